package cli

import (
	"errors"
	"fmt"
	"syscall"
)

// Ended is the error of a command that another process has carried out, which has said itself what failed.
type Ended struct{ Code int }

func (e Ended) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// StoppedBy gives the signal that is the cause of a context.
func StoppedBy(cause error) (signal syscall.Signal, stopped bool) {
	var by *signalError
	if !errors.As(cause, &by) {
		return 0, false
	}
	return by.signal, true
}
