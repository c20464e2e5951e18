package pingpong

// MaxTrips bounds round trips: their times are kept in memory, 8 bytes each.
const MaxTrips = 10_000_000
