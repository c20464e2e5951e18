// SPDX-License-Identifier: Apache-2.0

package card

import (
	"errors"

	"github.com/spf13/pflag"
)

// Waiting selects how a command waits for messages. With its own card it spins, which has the lowest latency. With the
// service it sleeps, because the service needs a processor to handle each message.
type Waiting struct {
	Sleep bool
	spin  bool
}

// Add adds the flags. The short form of --sleep may be empty.
func (w *Waiting) Add(f *pflag.FlagSet, short, who string) {
	f.BoolVarP(&w.Sleep, "sleep", short, false, who+"sleep while waiting (default with the service)")
	f.BoolVar(&w.spin, "spin", false, "spin while waiting (default without the service)")
}

// Check validates the flags.
func (w *Waiting) Check() error {
	if w.Sleep && w.spin {
		return errors.New("--sleep and --spin cannot be combined")
	}
	return nil
}

// Choose selects the default for the device unless a flag was given.
func (w *Waiting) Choose(d *Device) { w.Sleep = w.Sleep || d.Daemon != "" && !w.spin }

// String returns "sleep" or "spin".
func (w *Waiting) String() string {
	if w.Sleep {
		return "sleep"
	}
	return "spin"
}
