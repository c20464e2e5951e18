package daemon

import (
	"github.com/roced/roced/verbs/client"
	"github.com/spf13/pflag"
)

// Flags name a daemon, and one of its devices.
type Flags struct {
	Socket string
	Device string // empty: all
}

// Add adds the flags to a command's.
func (s *Flags) Add(f *pflag.FlagSet) {
	f.StringVarP(&s.Device, "device", "d", "", "`name` of the one device to look at (default all)")
	f.StringVar(&s.Socket, "daemon", client.DefaultPath, "`socket` of the daemon")
}
