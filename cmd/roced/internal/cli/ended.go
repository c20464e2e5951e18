// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"syscall"
)

// Ended is the error of a command that another process executed and whose errors that process has reported.
type Ended struct{ Code int }

func (e Ended) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// StoppedBy returns the signal that cancelled a context.
func StoppedBy(cause error) (signal syscall.Signal, stopped bool) {
	var by *signalError
	if !errors.As(cause, &by) {
		return 0, false
	}
	return by.signal, true
}
