// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"runtime"
)

// MakeRoom raises GOMAXPROCS so that other goroutines can run while some spin. With GOMAXPROCS 2, two spinning
// goroutines delay the others by 10 ms.
func MakeRoom(spinners int) { runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), spinners+2)) }
