package cli

import (
	"time"
)

// The limits of what can be asked for.
const (
	MaxDuration = 24 * time.Hour
	MaxRate     = 1_000_000_000 // messages a second
)
