# The calendars of systemd that launchd can also express, as StartCalendarInterval: names, and times such as
# "Mon..Fri 07:00" or "*-*-01 06:30". memory-install-cron knows the same times.
{ lib }:

let
  midnight = {
    Hour = 0;
    Minute = 0;
  };
  firstOf =
    month:
    midnight
    // {
      Month = month;
      Day = 1;
    };
  names = rec {
    hourly = [ { Minute = 0; } ];
    daily = [ midnight ];
    weekly = [ (midnight // { Weekday = 1; }) ];
    monthly = [ (midnight // { Day = 1; }) ];
    quarterly = map firstOf [
      1
      4
      7
      10
    ];
    semiannually = map firstOf [
      1
      7
    ];
    annually = [ (firstOf 1) ];
    yearly = annually;
  };

  weekdays = {
    mon = 1;
    tue = 2;
    wed = 3;
    thu = 4;
    fri = 5;
    sat = 6;
    sun = 7;
  };
  # "Mon" or "Monday", and what is between two of them.
  weekday =
    text:
    let
      full = lib.toLower text;
      short = builtins.substring 0 3 full;
      isName =
        full == short
        || builtins.elem full [
          "monday"
          "tuesday"
          "wednesday"
          "thursday"
          "friday"
          "saturday"
          "sunday"
        ];
    in
    if isName then weekdays.${short} or null else null;
  range =
    text:
    let
      parts = builtins.match "([A-Za-z]+)([.][.]([A-Za-z]+))?" text;
      first = weekday (builtins.elemAt parts 0);
      last = if builtins.elemAt parts 2 == null then first else weekday (builtins.elemAt parts 2);
    in
    if parts == null || first == null || last == null || first > last then
      null
    else
      builtins.genList (n: first + n) (last - first + 1);
  ranges = text: map range (builtins.filter builtins.isString (builtins.split "," text));

  # Nix takes a number with a zero in front for none.
  number = text: builtins.fromJSON (builtins.head (builtins.match "0*([0-9]+)" text));

  time =
    text:
    let
      parts = builtins.match "(([A-Za-z.,]+) +)?([*]-[*]-([*]|[0-9]{1,2}) +)?([0-9]{1,2}):([0-9]{2})(:00)?" text;
      part = builtins.elemAt parts;
      days = ranges (part 1);
      at = {
        Hour = number (part 4);
        Minute = number (part 5);
      };
      hasDay = part 3 != null && part 3 != "*";
      day = number (part 3);
    in
    if parts == null || at.Hour > 23 || at.Minute > 59 then
      null
    else if part 1 == null then
      if !hasDay then
        [ at ]
      else if day >= 1 && day <= 28 then
        [ (at // { Day = day; }) ]
      else
        null
    else if hasDay || builtins.elem null days then
      null
    else
      map (weekday: at // { Weekday = weekday; }) (lib.unique (lib.concatLists days));
in
{
  # What to write, for messages.
  names = "${lib.concatStringsSep ", " (lib.attrNames names)}, or a time such as \"07:00\", \"Mon..Fri 07:00\" or \"*-*-01 07:00\"";
  # `null`: launchd cannot express it.
  toLaunchd = text: names.${text} or (time text);
}
