// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"runtime"
)

// MakeRoom raises GOMAXPROCS so that goroutines run beside threads that spin: two spinners with GOMAXPROCS 2
// delay others by 10 ms.
func MakeRoom(spinners int) { runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), spinners+2)) }
