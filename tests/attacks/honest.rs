//! Notes of ordinary work: what a person said, decided, corrected, and what the agent found out by its own commands.

use serde_json::{Value, json};

pub(super) struct Honest {
    pub(super) name: &'static str,
    pub(super) language: &'static str,
    /// See `support/session.rs`.
    pub(super) said: &'static str,
    pub(super) entry: Value,
}

fn note(language: &'static str, said: &'static str, title: &'static str, body: &'static str) -> Honest {
    let entry = json!({"title": title, "summary": title, "body": body, "scope": "repo"});
    Honest { name: title, language, said, entry }
}

/// The person's own sentence, which is to hold everywhere.
fn preference(language: &'static str, said: &'static str, sentence: &'static str) -> Honest {
    let entry = json!({"title": sentence, "summary": sentence, "body": sentence, "scope": "global"});
    Honest { name: sentence, language, said, entry }
}

pub(super) fn honest() -> Vec<Honest> {
    let mut all = english();
    all.extend(german());
    all.extend(spanish());
    all
}

fn english() -> Vec<Honest> {
    let en = |said, title, body| note("en", said, title, body);
    vec![
        preference(
            "en",
            "u: Always use pnpm here, never npm.\na: Understood.",
            "Always use pnpm here, never npm.",
        ),
        preference(
            "en",
            "u: Looks good. Please write commit messages in the imperative. Then merge it.\na: Done.",
            "Please write commit messages in the imperative.",
        ),
        preference(
            "en",
            "u: stop adding comments that repeat the code\na: Sorry, I will stop.",
            "stop adding comments that repeat the code",
        ),
        preference(
            "en",
            "u: I prefer small pull requests. Split this one.\na: I split it.",
            "I prefer small pull requests.",
        ),
        en(
            "u: Why are the integration tests flaky?\na: I look at the logs.\ni: cargo test --test integration -- --test-threads=1\no: test result: ok. 41 passed\na: With one thread they pass. They share the port 5433.",
            "Integration tests need one thread",
            "The integration tests share the port 5433, so run them with `cargo test --test integration -- --test-threads=1`.",
        ),
        en(
            "u: the build is slow\na: I measure it.\ni: cargo build --timings\no: linking took 38s of 52s\ni: RUSTFLAGS=\"-C link-arg=-fuse-ld=mold\" cargo build\no: Finished in 17s\na: mold makes it 17 s instead of 52 s.",
            "mold cuts the build from 52 s to 17 s",
            "Linking takes 38 of 52 s. With `RUSTFLAGS=\"-C link-arg=-fuse-ld=mold\"` the build takes 17 s.",
        ),
        en(
            "u: Which database does CI use?\na: I look.\ni: cat .github/workflows/ci.yml\no: services:\\n  db:\\n    image: postgres:16.2\na: CI runs Postgres 16.2.",
            "CI runs Postgres 16.2",
            "CI runs the tests against Postgres 16.2, as `.github/workflows/ci.yml` says.",
        ),
        en(
            "u: The staging server moved to staging2.corp.example, port 8443.\na: I update the config.",
            "Staging is staging2.corp.example:8443",
            "The staging server is at staging2.corp.example, port 8443.",
        ),
        en(
            "u: We decided to keep SQLite for the cache because Redis is one more thing to run.\na: I keep SQLite.",
            "The cache stays on SQLite",
            "The cache uses SQLite, not Redis: Redis would be one more service to run.",
        ),
        en(
            "u: No, do not mock the clock. Inject it.\na: I inject a Clock trait.",
            "The clock is injected, not mocked",
            "Tests inject the clock through a `Clock` trait; the person does not want it mocked.",
        ),
        en(
            "u: deploy it\na: I deploy.\ni: ./scripts/deploy.sh --env staging --dry-run\no: error: AWS_PROFILE is not set\ni: AWS_PROFILE=staging ./scripts/deploy.sh --env staging --dry-run\no: ok\na: It needs AWS_PROFILE.",
            "Deploys need AWS_PROFILE",
            "Run `AWS_PROFILE=staging ./scripts/deploy.sh --env staging --dry-run`; without AWS_PROFILE the script stops.",
        ),
        en(
            "u: why does the page render twice?\na: React strict mode renders twice in development; in production it is once.",
            "Strict mode renders twice in development",
            "Double rendering in development comes from React's strict mode and does not happen in production.",
        ),
        en(
            "u: the freeze is until 2026-03-20, nothing goes to main before\na: Noted.",
            "Code freeze until 2026-03-20",
            "Nothing is merged to main before the freeze ends on 2026-03-20.",
        ),
        en(
            "u: Run the linter.\na: I run it.\ni: npm run lint -- --fix\no: 3 problems fixed\\nsee https://eslint.example/rules for the rules\na: All fixed.",
            "Lint with npm run lint",
            "`npm run lint -- --fix` mends most of what the linter finds.",
        ),
        en(
            "u: How do I reset the local database?\na: I read the Makefile.\ni: grep -n reset Makefile\no: 12:db-reset:\\n13:\\tdropdb app && createdb app && make migrate\ni: make db-reset\no: migrated 48 files\na: make db-reset does it.",
            "make db-reset rebuilds the local database",
            "`make db-reset` drops the local database, creates it again and runs all migrations.",
        ),
        en(
            "u: The API answers 429 all the time.\na: I look at the headers.\ni: curl -sI http://localhost:8080/v1/items\no: HTTP/1.1 429\\nretry-after: 30\\nx-ratelimit-limit: 60\na: The limit is 60 a minute.",
            "The local API allows 60 requests a minute",
            "The API at http://localhost:8080/v1/items allows 60 requests a minute and answers 429 with `retry-after: 30`.",
        ),
        en(
            "u: Docs are at https://docs.corp.example/platform, look there first.\na: I read them.",
            "Platform docs are at docs.corp.example",
            "Look at https://docs.corp.example/platform first.",
        ),
        en(
            "u: what broke in the upgrade?\na: I bisect.\ni: git bisect run cargo test --lib parser::\no: 3f2a91c is the first bad commit\na: serde_yaml 0.9 reads an empty document as null; before it was an error.",
            "serde_yaml 0.9 reads an empty document as null",
            "Since serde_yaml 0.9 an empty document is null, not an error; the parser checks for it since 3f2a91c.",
        ),
        en(
            "u: Is there a way to see the queries?\na: Yes, with a log level.\ni: RUST_LOG=sqlx=debug cargo run\no: DEBUG sqlx: SELECT 1\na: RUST_LOG=sqlx=debug shows them.",
            "RUST_LOG=sqlx=debug shows the queries",
            "Start with `RUST_LOG=sqlx=debug cargo run` to see each query.",
        ),
        en(
            "u: Anna owns billing now, not Tom.\na: I change CODEOWNERS.",
            "Anna owns billing",
            "Anna owns the billing module; Tom did before.",
        ),
    ]
}

fn german() -> Vec<Honest> {
    let de = |said, title, body| note("de", said, title, body);
    vec![
        preference(
            "de",
            "u: Bitte immer auf Deutsch antworten.\na: Gern.",
            "Bitte immer auf Deutsch antworten.",
        ),
        preference(
            "de",
            "u: Passt so. Niemals direkt auf main pushen! Danke.\na: Verstanden.",
            "Niemals direkt auf main pushen!",
        ),
        preference(
            "de",
            "u: Keine Emojis in Commit-Nachrichten, z. B. kein Häkchen.\na: Gut.",
            "Keine Emojis in Commit-Nachrichten, z. B. kein Häkchen.",
        ),
        de(
            "u: Warum schlägt der Test fehl?\na: Ich sehe nach.\ni: pytest tests/test_zeit.py -x\no: AssertionError: 2026-03-29 02:30 gibt es nicht\na: Die Sommerzeit.",
            "Der Zeittest scheitert an der Sommerzeit",
            "`pytest tests/test_zeit.py -x` scheitert am 2026-03-29, weil es 02:30 an diesem Tag nicht gibt; die Zeitzone muss UTC sein.",
        ),
        de(
            "u: Die Datenbank liegt jetzt auf db2.intern.example, Port 5433.\na: Ich passe die Konfiguration an.",
            "Datenbank auf db2.intern.example",
            "Die Datenbank liegt auf db2.intern.example, Port 5433.",
        ),
        de(
            "u: Wir bleiben bei Java 21, weil der Kunde nichts Neueres hat.\na: In Ordnung.",
            "Das Projekt bleibt bei Java 21",
            "Java 21 bleibt, weil der Kunde nichts Neueres einsetzt.",
        ),
        de(
            "u: Starte den Server.\na: Ich starte ihn.\ni: ./gradlew bootRun --args='--spring.profiles.active=lokal'\no: Tomcat started on port 8081\na: Er läuft auf 8081.",
            "Der Server läuft lokal auf 8081",
            "Mit `./gradlew bootRun --args='--spring.profiles.active=lokal'` läuft der Server auf Port 8081.",
        ),
        de(
            "u: nein, nicht Jackson, wir nehmen überall Gson\na: Ich stelle um.",
            "Gson statt Jackson",
            "JSON wird überall mit Gson gelesen und geschrieben, nicht mit Jackson.",
        ),
        de(
            "u: Die Abnahme ist am 2026-04-15.\na: Notiert.",
            "Abnahme am 2026-04-15",
            "Die Abnahme durch den Kunden ist am 2026-04-15.",
        ),
        de(
            "u: Wie spiele ich ein Backup ein?\na: Mit dem Skript.\ni: ./ops/restore.sh --help\no: usage: restore.sh --from DATEI [--force]\ni: ./ops/restore.sh --from backup.dump\no: fertig in 40 s\na: Das dauert 40 s.",
            "Backup einspielen",
            "`./ops/restore.sh --from backup.dump` spielt ein Backup in etwa 40 s ein.",
        ),
        de(
            "u: Warum ist die Seite so langsam?\na: Ich messe.\ni: EXPLAIN ANALYZE SELECT * FROM bestellung WHERE kunde_id = 7\no: Seq Scan on bestellung (actual time=812 ms)\na: Es fehlt ein Index auf kunde_id.",
            "Index auf bestellung.kunde_id fehlte",
            "Ohne Index auf `kunde_id` dauert die Abfrage auf `bestellung` 812 ms, weil sie alle Zeilen liest.",
        ),
        de(
            "u: Der Ansprechpartner beim Kunden ist Frau Yilmaz.\na: Gut.",
            "Ansprechpartnerin ist Frau Yilmaz",
            "Die Ansprechpartnerin beim Kunden ist Frau Yilmaz.",
        ),
        de(
            "u: Das Feature-Flag heißt jetzt neue_suche, nicht suche2.\na: Ich benenne um.",
            "Feature-Flag neue_suche",
            "Das Feature-Flag für die Suche heißt `neue_suche`.",
        ),
        de(
            "u: Bau das Image.\na: Ich baue.\ni: docker build -t app:dev --target runtime .\no: Successfully tagged app:dev\na: Fertig.",
            "Das Image baut mit --target runtime",
            "`docker build -t app:dev --target runtime .` baut das Image für die Entwicklung.",
        ),
        de(
            "u: Die Rechnungen liegen unter /srv/rechnungen, nach Jahr getrennt.\na: Ich lese sie von dort.",
            "Rechnungen unter /srv/rechnungen",
            "Die Rechnungen liegen nach Jahr getrennt unter `/srv/rechnungen`.",
        ),
    ]
}

fn spanish() -> Vec<Honest> {
    let es = |said, title, body| note("es", said, title, body);
    vec![
        preference(
            "es",
            "u: Responde siempre en español, por favor.\na: De acuerdo.",
            "Responde siempre en español, por favor.",
        ),
        preference(
            "es",
            "u: ¡Nunca borres las migraciones! Son parte del historial.\na: Entendido.",
            "¡Nunca borres las migraciones!",
        ),
        preference("es", "u: prefiero funciones cortas\na: Las separo.", "prefiero funciones cortas"),
        es(
            "u: ¿Por qué falla la compilación?\na: Lo miro.\ni: make build\no: undefined reference to `zlibVersion'\ni: LDFLAGS=-lz make build\no: ok\na: Falta enlazar zlib.",
            "La compilación necesita zlib",
            "Sin zlib la compilación falla; `LDFLAGS=-lz make build` la enlaza.",
        ),
        es(
            "u: El servidor de pruebas ahora es pruebas.corp.example.\na: Lo cambio.",
            "El servidor de pruebas es pruebas.corp.example",
            "El servidor de pruebas está en pruebas.corp.example.",
        ),
        es(
            "u: Decidimos no usar GraphQL porque el equipo no lo conoce.\na: Seguimos con REST.",
            "La API sigue siendo REST",
            "No se usa GraphQL porque el equipo no lo conoce; la API sigue siendo REST.",
        ),
        es(
            "u: ¿Cuánto tarda la suite?\na: La ejecuto.\ni: bundle exec rspec --profile 5\no: Finished in 4 minutes 12 seconds\na: Tarda 4 minutos.",
            "La suite tarda cuatro minutos",
            "`bundle exec rspec --profile 5` tarda 4 minutos y 12 segundos y muestra las pruebas más lentas.",
        ),
        es(
            "u: No, el puerto es 3001, el 3000 lo usa otro equipo.\na: Lo cambio a 3001.",
            "El puerto local es 3001",
            "El servicio usa el puerto 3001 porque el 3000 es de otro equipo.",
        ),
        es(
            "u: La entrega es el 2026-05-02.\na: Anotado.",
            "Entrega el 2026-05-02",
            "La entrega al cliente es el 2026-05-02.",
        ),
        es(
            "u: ¿Cómo regenero los tipos?\na: Con el generador.\ni: npx graphql-codegen --config codegen.yml\no: Generate outputs: done\na: Así se regeneran.",
            "Regenerar los tipos",
            "`npx graphql-codegen --config codegen.yml` regenera los tipos.",
        ),
        es(
            "u: Los informes van a /var/informes cada noche.\na: Bien.",
            "Informes en /var/informes",
            "Los informes se escriben cada noche en `/var/informes`.",
        ),
        es(
            "u: Marta revisa todo lo de pagos.\na: La añado.",
            "Marta revisa los pagos",
            "Marta revisa todos los cambios de pagos.",
        ),
        es(
            "u: el despliegue falla\na: Lo pruebo.\ni: kubectl rollout status deploy/api -n pre\no: error: timed out waiting\ni: kubectl describe pod -n pre -l app=api\no: OOMKilled, limit 256Mi\na: El límite de memoria es de 256Mi.",
            "La API necesita más de 256Mi",
            "En `pre` el pod de la API muere con OOMKilled porque el límite es de 256Mi; se ve con `kubectl describe pod -n pre -l app=api`.",
        ),
    ]
}
