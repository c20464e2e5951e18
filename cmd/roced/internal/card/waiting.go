package card

import (
	"errors"

	"github.com/spf13/pflag"
)

// Waiting is how a command waits for messages. It spins on a device of its own, where a round trip is quickest
// so. Over the service, which needs a processor for each message, it sleeps.
type Waiting struct {
	Sleep bool
	spin  bool
}

// Add adds the flags. A short form of --sleep may be empty.
func (w *Waiting) Add(f *pflag.FlagSet, short, who string) {
	f.BoolVarP(&w.Sleep, "sleep", short, false, who+"sleep while waiting, as over the service by itself")
	f.BoolVar(&w.spin, "spin", false, "spin while waiting, as with a card of its own by itself")
}

// Check finds mistakes.
func (w *Waiting) Check() error {
	if w.Sleep && w.spin {
		return errors.New("--sleep excludes --spin")
	}
	return nil
}

// Choose chooses what suits the device, if no flag has.
func (w *Waiting) Choose(d *Device) { w.Sleep = w.Sleep || d.Daemon != "" && !w.spin }

// String is "sleep" or "spin".
func (w *Waiting) String() string {
	if w.Sleep {
		return "sleep"
	}
	return "spin"
}
