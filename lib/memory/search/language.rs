//! What search knows of English, in three small tables; other languages are found by the words themselves.
//!
//! The tables widen a query, never a note, so a change here needs nothing to be made anew. They hold what the
//! stemmer cannot know: irregular forms, abbreviations, and everyday words and words of the trade that people
//! use for each other. A line is a group: each of its words may stand for each other one.

use frostem::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

/// How far a word may be from the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Nearness {
    /// The word, inflected or not.
    Exact,
    /// The same by another name: `db`, `database`.
    Same,
    /// Often used for the same: `remove`, `delete`.
    Related,
    /// Begins alike: `Swede`, `Swedish`.
    Alike,
    /// One slip of the pen away.
    Slip,
}

impl Nearness {
    pub(crate) const COUNT: usize = 5;

    /// What it is worth beside the word itself.
    pub(crate) fn weight(self) -> f64 {
        match self {
            Nearness::Exact => 1.0,
            Nearness::Same => 0.85,
            Nearness::Related => 0.5,
            Nearness::Alike => 0.4,
            Nearness::Slip => 0.6,
        }
    }
}

/// The stem of a folded word. What is not English letters stays as it is.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() > 2 && word.len() < 40 && word.bytes().all(|b| b.is_ascii_lowercase()) {
        Stemmer::new(Algorithm::English).stem(word)
    } else {
        Cow::Borrowed(word)
    }
}

/// Words that ask or join, and say nothing of what is asked for.
pub(crate) fn is_empty_word(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| EMPTY.split_ascii_whitespace().collect());
    WORDS.contains(word)
}

/// Words by which questions are put to a memory: they may matter, but less than what they are about.
pub(crate) fn is_framing(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| FRAMING.split_ascii_whitespace().collect());
    WORDS.contains(word)
}

const EMPTY: &str = "\
a about above after again against all also am an and any anyone anything are arent as at be because been before \
being below between both but by can cant cannot could couldnt did didnt do does doesnt doing dont down during each \
either else every everything few for from further had hadnt has hasnt have havent having he her here hers herself \
him himself his how i if im in into is isnt it its itself ive just let lets me might more most much must my myself \
no nor not of off on once one only or other our ours ourselves out over own please same shall she should shouldnt \
so some somebody someone something such than that the their theirs them themselves then there these they this \
those though through to too under until up upon us very via was wasnt we were werent what whatever when where \
whether which while who whom whose why will with within without wont would wouldnt yes yet you your yours \
yourself";

const FRAMING: &str = "\
actually agree agreed ask asked best call called case come came currently decide decided decision different else \
find found get gets getting give given go going good got happen happened happens happening hear kind know known last \
like long look make makes many mean mention mentioned name need needs now off often old per put really recently \
remember said say says see seem set show take takes talk tell thing things think time told type use used \
uses using usually want wants way ways well work works";

/// Forms of one word that have no stem in common.
const FORMS: &str = "\
be is are was were been
become became
begin began begun
bite bit bitten
blow blew blown
break broke broken
bring brought
build built
buy bought
catch caught
child children
choose chose chosen
come came
datum data
decide decision
deal dealt
die died dying dead death
do did done
draw drew drawn
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feel felt
fight fought
find found
fly flew flown
foot feet
forget forgot forgotten
freeze froze frozen
get got gotten
give gave given
go goes went gone
grow grew grown
hang hung
hear heard
hide hid hidden
hold held
index indices indexes
keep kept
know knew known
lead led
leave left
lend lent
lose lost loss
make made
man men
marry married marriage
mean meant
meet met
mouse mice
pay paid
person people
ride rode ridden
ring rang rung
rise rose risen
run ran
say said
see saw seen
seek sought
sell sold sale
send sent
shake shook shaken
shoot shot
show shown
sing sang sung
sink sank sunk
sleep slept
slide slid
speak spoke spoken speech
spend spent
stand stood
steal stole stolen
stick stuck
swim swam swum
take took taken
teach taught
tell told
think thought
throw threw thrown
tooth teeth
understand understood
wake woke woken
wear wore worn
weigh weight
wife wives
win won
woman women
write wrote written
choose choice
fail failure
prove proof
analyse analyze analysis
apply application
explain explanation
describe description
maintain maintenance
expire expiry expiration
produce production
reduce reduction
resolve resolution
retain retention
succeed success
receive receipt
respond response
permit permission
compare comparison
delay delayed
deep depth
high height
wide width
strong strength
ill illness
hot heat
color colour
license licence
behavior behaviour
favorite favourite
center centre
gray grey
catalog catalogue
cancel cancelled canceled
program programme
";

/// Abbreviations, spellings and names of one thing.
const SAME: &str = "\
abbr abbreviation
accessibility a11y
address addr
admin administrator administration
api apis
app application
argument arg args parameter param
asynchronous async
attribute attr
authentication auth authenticate
authorization authz authorize authorise
automobile car
average avg mean
bicycle bike
boolean bool
bookkeeping accounting
bug defect
centimeter cm
certificate cert certs
character char
cli commandline
command cmd
communication comms
compile compilation
configuration config configure cfg conf
connection conn
container docker
continuous ci
copy duplicate clone
cpu processor
credential creds cred
database db databases
dad father daddy papa
decrypt decryption
default defaults
delete deletion
dependency dep deps
deploy deployment
dev development developer
directory dir folder
disc disk
document doc docs documentation
doctor dr physician
email mail mails
encrypt encryption
environment env
error err
example eg sample
exception throw
execute exec execution
expression expr
extension ext
fall autumn
file files
film movie
flat apartment
frontend front
backend back
function func fn
grandfather grandpa granddad
grandmother grandma granny
gym fitness
high hi
holiday vacation
host hostname
http https
hypertext html
icu internationalization
identifier id ids
image img picture pic
implementation impl implement
information info
initialize init initialise
integer int
internationalization i18n internationalisation localization l10n
international intl
javascript js
job task
kilometer km
kubernetes k8s kube cluster
large big
laundry washing
library lib
load balancer lb
maximum max
memory ram
merge mr
message msg
middle center
minimum min
minute min
mobile phone cellphone smartphone
mom mother mum mama
number num
object obj
observability o11y
operation op ops operations
operating os
optimize optimise optimization
organization org organisation
package pkg
password passwd pwd passphrase passcode
performance perf
permission perm permissions
phd doctorate doctoral dissertation
photograph photo photos
position pos
postgres postgresql pg psql
previous prev
private priv
process proc
production prod
profession occupation
project proj
property prop props
python py
query queries
reference ref
regular regex regexp
repository repo repos
request req
requirement reqs
resource res
response resp
rust rs
secret secrets
second sec seconds
server srv
service svc
signin login logon
signout logout logoff
soccer football
sofa couch
source src
specification spec specs
standard std
statistics stats metrics
string str
supermarket grocery groceries
synchronize sync synchronise synchronization
system sys
table tbl
telephone phone
television tv telly
temperature temp
temporary temp tmp
terminal tty console
timezone tz
tls ssl
transaction tx txn
trash garbage rubbish
typescript ts
university uni college
user usr
utility util utils
variable var
vehicle car van
version ver
virtual vm
window windows
year yr
";

/// Used for one another often enough to be worth a look.
const RELATED: &str = "\
abandon quit stop
ability skill talent
accept approve agree
accident crash collision
account user profile
acquire buy purchase get
activity hobby pastime interest
add append insert include
adopt adoption
adore love like enjoy fond favorite prefer
afraid scared fear worried anxious
aim goal target objective
alarm alert page notify notification warning
alive live
allergy allergic intolerance
allow permit enable accept
alter change modify edit update mutate
amount number count size quantity
ancestor origin root heritage
angry upset mad annoyed
anniversary birthday
answer reply response respond
archive backup
arrange organize plan schedule
art painting drawing sculpture craft pottery
article post blog
assist help support
attempt try retry
attend visit join go participate
author writer wrote
baby infant newborn
backup snapshot restore recovery dump
bag luggage suitcase baggage backpack
beach sea ocean coast
beautiful pretty lovely
begin start launch commence open
benchmark performance measure load
bill invoice billing receipt
bind listen
birth born birthday age
block lock stall hang
boat ship ferry
book novel read
boss manager supervisor lead
boyfriend girlfriend partner
branch fork
brand vendor provider supplier
break broken fail crash
brother sister sibling
budget limit cap quota
bug error failure fault issue problem defect
build compile make construct
cache caching cached memoize
call phone ring contact
camp camping hike hiking outdoors tent
cancel abort terminate revoke
capacity limit size
cap limit maximum ceiling
career job work profession occupation employment
cat dog pet animal
celebrate party celebration
certificate credential
charge bill cost fee price
charity fundraiser donate donation
chat message talk
cheap inexpensive affordable
check verify validate test inspect
child kid son daughter
church ceremony
cigarette smoke smoking tobacco
city town village
class course lesson
clean tidy cleanup purge
client customer
close shut end
cloud aws gcp azure
clothes dress shirt outfit
coach trainer
code source program
collaborator contributor colleague
colleague coworker teammate
commit push
company firm employer business
compete competition contest race
concert gig show performance music
concurrency concurrent parallel thread
convention rule style guideline standard
cook bake recipe meal
cost price expense spend money bill fee
country nation
couple pair
crash panic abort die
create make generate add new
credential password secret key token
custom convention
customer user client consumer tenant
cut trim truncate shorten
damage break broken hurt
dance dancing
database postgres sqlite mysql sql table storage
date day
deadline due timeout
deadlock hang stuck
deal offer
debug diagnose troubleshoot
decide choose pick select
default standard
delay latency wait lag
delete remove erase drop purge destroy clear
deliver ship send
deploy release ship rollout publish
desire want wish hope
detect find discover
diagram chart figure
dialog modal popup
diet vegetarian vegan
different differ
dinner lunch meal supper breakfast
disable off deactivate
disk storage
distance far
divorce separate
dog puppy
domain host dns
downtime outage incident unavailable
drink beverage
duplicate dedupe copy
duration long length lifetime
duty oncall shift
earn salary wage pay income
east west north south
edit change modify
elect vote election
email inbox newsletter
employee staff worker
empty blank none
encoding charset utf8
encourage motivate support inspire
end finish complete done
endpoint route url path
engine motor
enjoy love like
enum enumeration
error exception failure
escape quote sanitize
establish create found
event meeting appointment
exam test
exclude ignore skip omit
exercise workout training fitness run
expensive dear costly
expire expired stale ttl timeout
export dump download
extract parse
fail error crash break broken
family relative parent
fast quick speed performance rapid
feature functionality
feeling emotion mood
fetch get load download retrieve
fiance engaged engagement
field column property attribute
filter exclude
firewall network
fix mend repair patch solve resolve correct
flag option switch toggle
flaky intermittent unstable nondeterministic random
flight plane airplane fly
flower plant garden
folder path
food eat meal dish
format layout style
formatter format prettier
framework library
freeze hang stuck lock
friend buddy pal
frightened scared afraid
garden yard
gateway proxy
gift present
girl woman
glad happy delighted
graduate degree diploma
group team
grow raise
guide tutorial howto instruction
guideline rule policy
handle manage
hang freeze stuck block
happen occur
happy glad joy
harm hurt injure injury
hash digest checksum
health medical
heal recover recovery
hidden secret
hire recruit employ
hobby activity sport pastime
home house flat apartment live
hospital clinic ward
host serve
hotel accommodation guesthouse stay hostel
hurt injure injury pain
husband wife spouse married partner
idle inactive
ignore skip exclude
illness sick ill disease sickness
import load ingest
improve optimize better enhance
increase raise grow bump
ingredient recipe
injury hurt wound
insert add
install setup
instance pod replica node
instrument guitar piano violin
interface api
internet network online web
invite invitation
invoke call run
issue ticket bug problem
item entry record
job work position role employer
join attend
journey trip travel tour
keyboard shortcut keybinding
kill terminate stop
lag delay
language tongue locale
laptop computer machine
large huge
latency slow delay
launch start
lawyer attorney
leak secret exposed
learn study lesson class
leave quit depart exit
legal law license
letter mail
library package crate module dependency
license legal
limit max quota cap
link url
lint linter clippy
list array
live reside home move
local localhost
location place where
lock mutex
log logging logs
login signin session password
lookup search find resolve
lots many
lunch meal
machine server host box node
mad angry
mandatory required
map dictionary
marathon race run
mark grade
marry wedding marriage spouse
maximum limit
measure metric benchmark
medication medicine drug pill tablet
meet meeting
memory heap
mentor coach
merge combine join
metric measure monitoring
migration migrate schema
mistake error
mock stub fake
modify change
money payment salary price cost pay
monitor observe alert monitoring
mount attach
move relocate migrate
museum exhibition gallery exhibit
music song band
name title
neighbor neighbour
network connection internet
nightly nocturnal night
notify notification alert message
number count
obtain get
occupation job work
office workplace
offline disconnected
old legacy deprecated age
order purchase
outage incident downtime
owner maintainer responsible
package dependency crate library
page site
pain hurt ache
paint painting picture
parent mother father
parse parser parsing
partner spouse husband wife boyfriend girlfriend
party celebration
patch fix
path route
pay payment
payment charge checkout billing invoice
people guest
permission role access
persist save store
phone call mobile
photo picture image
pipeline ci workflow
place location venue
plan intend
play game
plugin extension addon
poem poetry
policy rule
port listen
pregnant pregnancy baby expecting
preference prefer like favorite want
prevent avoid stop forbid
price cost amount
print output
private secret
problem issue trouble bug
procedure process steps
promote promotion
protect secure
publish release
pull fetch
purchase buy order
purpose reason goal
push publish
quarrel argue argument fight
question query
queue job worker broker
quick fast
quit resign leave stop
raise increase
rate frequency limit
read load
reason why because cause
recipe cook bake dish
record entry row
refactor cleanup rewrite
refund reimbursement
refuse reject deny forbid
register signup
regression bug
reject refuse
relationship partner dating
relax unwind calm rest destress
release version
relocate move
remind reminder
remove delete
rent lease landlord
repair fix mend
replace swap substitute
reply answer
replicate replication replica
report summary
request call
research study
reserve book
reset restart
resident live
restart reboot reload respawn
restaurant cafe diner
result outcome
retry repeat again attempt
return back
revert rollback undo
review feedback
reward prize award
rewrite refactor
role permission job
rotate renew exchange
rule policy convention
run execute start launch
safe secure
salary pay wage raise
scale scaling capacity
scared afraid
schedule cron timer calendar
schema table structure
school college university education
score rating
screen display
search find lookup
secure security safe
send deliver
serialize serialization encode
server host
session login
setup install configure onboarding
shell bash terminal
ship deploy
shop store
shut close
shutdown stop terminate exit
sick ill
sign signature
silent quiet
sing song
single unmarried
site page website
size length
skip ignore
sleep bed
slow latency performance sluggish
small little tiny
smart clever
snow ski skiing winter
song music
speed fast performance
sport exercise
spouse husband wife
start begin
startup boot start
stop quit end halt
storage disk bucket
story tale
stress anxiety pressure
student pupil
study learn education degree major
style convention format
subscription plan
sue lawsuit
suggest recommend recommendation
summary overview
support help
surgery operation
switch toggle
table schema
tag label
talk speak conversation
target goal
tax vat
teacher tutor instructor
test testing spec
text message
theater theatre
thread concurrency
throttle limit
throw raise
ticket issue
timeout deadline expire
timer cron schedule
tired exhausted
token key
tool utility
toolchain compiler
town city
trace span tracing
traffic load
training workout
translate translation
travel trip journey tour vacation holiday
trip vacation
trouble problem
truncate cut
try attempt
type kind
uncle aunt
undo revert
unwell sick
update upgrade
upgrade update bump
upload import
upset sad
user customer
vacation trip travel holiday
validate check
vehicle bicycle motorcycle
verbose brief short
verify check validate
veterinarian vet
visible show
visit see
volunteer volunteering charity
wait delay sleep
walk hike stroll
wallet purse
warn alert
watch see
wealth money
weather rain
web site
wedding marry marriage
weekend saturday sunday
win victory
wipe erase
wish want
worker job
workflow pipeline
worry anxious
write edit
wrong incorrect
yell shout
young youth
auth authentication login signin session token
automatic automatically itself auto
idempotent idempotency twice double duplicate
npm pnpm yarn node package
pr mr pull request review
sample sampled share portion percentage
sign log
";

/// Words that may stand for `word`, whose stem is `stemmed`, beginning with the nearest. Never `word` itself.
pub(crate) fn others(word: &str, stemmed: &str) -> Vec<(&'static str, Nearness)> {
    let mut found: Vec<(&'static str, Nearness)> = Vec::new();
    // What stemming leaves differs from the word's beginning in the last letter at most.
    let sure = if stemmed.len() > 2 { stemmed.len() - 1 } else { stemmed.len() };
    let Some(beginning) = stemmed.get(..sure).filter(|beginning| !beginning.is_empty()) else { return found };
    let is_it = |other: &str| other == word || (other.starts_with(beginning) && *stem(other) == *stemmed);
    for (group, nearness) in Groups::with_words_like(word) {
        if group.iter().any(|other| is_it(other)) {
            let others = group.iter().filter(|other| !is_it(other));
            found.extend(others.map(|other| (*other, *nearness)));
        }
    }
    found
}

/// Words that stand for each other, and how near they are.
type Group = (Vec<&'static str>, Nearness);

/// The tables, taken apart once: a long text has dozens of words, and is asked about hundreds of times.
struct Groups {
    all: Vec<Group>,
    /// For each first byte of a word, the groups that have such a word, in order.
    by_first: Vec<Vec<usize>>,
}

impl Groups {
    /// The groups in which `word`, or a word of its stem, may stand: stemming leaves a word's first letter alone.
    fn with_words_like(word: &str) -> impl Iterator<Item = &'static Group> {
        static GROUPS: LazyLock<Groups> = LazyLock::new(Groups::of_tables);
        let first = word.as_bytes().first().map_or(0, |first| usize::from(*first));
        GROUPS.by_first[first].iter().filter_map(|index| GROUPS.all.get(*index))
    }

    fn of_tables() -> Groups {
        let mut groups = Groups { all: Vec::new(), by_first: vec![Vec::new(); 256] };
        for (table, nearness) in
            [(FORMS, Nearness::Exact), (SAME, Nearness::Same), (RELATED, Nearness::Related)]
        {
            for line in table.lines() {
                let words: Vec<&str> = line.split(' ').collect();
                for first in words.iter().filter_map(|word| word.as_bytes().first()) {
                    let known = &mut groups.by_first[usize::from(*first)];
                    if known.last() != Some(&groups.all.len()) {
                        known.push(groups.all.len());
                    }
                }
                groups.all.push((words, nearness));
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_others() {
        assert!(others("bought", "bought").contains(&("buy", Nearness::Exact)));
        assert!(others("databases", "databas").contains(&("db", Nearness::Same)));
        assert!(others("deleting", "delet").contains(&("remove", Nearness::Related)));
        assert!(others("xylophone", "xylophon").is_empty());
    }

    /// By what a word may be found as, only those groups are looked at that have a word of the same first letter.
    #[test]
    fn stemming_leaves_the_first_letter_alone() {
        for word in [EMPTY, FRAMING, FORMS, SAME, RELATED].join(" ").split_whitespace() {
            for ending in ["", "s", "es", "ed", "ing", "ly", "ness", "ies", "y"] {
                let word = format!("{word}{ending}");
                assert_eq!(stem(&word).as_bytes()[0], word.as_bytes()[0], "{word}");
            }
        }
    }

    #[test]
    fn the_tables_are_folded_words() {
        for word in [EMPTY, FRAMING, FORMS, SAME, RELATED].join(" ").split_whitespace() {
            assert!(word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{word}");
        }
    }

    #[test]
    fn only_english_letters_are_stemmed() {
        assert_eq!(stem("retries"), stem("retry"));
        assert_eq!(stem("日本"), "日本");
        assert_eq!(stem("1.89"), "1.89");
    }
}
