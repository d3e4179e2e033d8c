# The calendar names of systemd that launchd can also express, as StartCalendarInterval.
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
in
rec {
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
}
