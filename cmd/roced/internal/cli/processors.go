package cli

import (
	"runtime"
)

// MakeRoom lets goroutines run beside threads that spin: two spinners at GOMAXPROCS 2 delay
// the others by 10 ms.
func MakeRoom(spinners int) { runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), spinners+2)) }
