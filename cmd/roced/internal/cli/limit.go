// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"
)

// Limits of flag values.
const (
	MaxDuration = 24 * time.Hour
	MaxRate     = 1_000_000_000 // messages per second
)
