package card

import (
	"fmt"
	"slices"

	"github.com/roced/roced/verbs/client"
	"github.com/spf13/pflag"
)

// sharedFlags say whether the device is the service's.
type sharedFlags struct {
	socket string
	flags  *pflag.FlagSet
}

// noService is the value of --daemon that keeps a command from looking for the service.
const noService = "none"

// ownFlags are about a card in this process: the service's configuration says what holds for its devices.
var ownFlags = []string{"netns", "xdp", "tx", "copy", "zerocopy", "membership"}

func (s *sharedFlags) add(f *pflag.FlagSet) {
	s.flags = f
	f.StringVar(&s.socket, "daemon", "", "`socket` of the service whose device to use, "+client.DefaultPath+" without a value; by itself the service there is used if it has a device of that name, and none keeps from that")
	f.Lookup("daemon").NoOptDefVal = client.DefaultPath
}

// asked reports whether the service's device is asked for.
func (s *sharedFlags) asked() bool { return s.socket != "" && s.socket != noService }

// own gives the first flag that is about a card in this process; empty if none is given.
func (s *sharedFlags) own() string {
	for _, name := range ownFlags {
		if s.flags != nil && s.flags.Changed(name) {
			return name
		}
	}
	return ""
}

func (s *sharedFlags) checkShared() error {
	if own := s.own(); own != "" {
		return fmt.Errorf("--%s and --daemon exclude each other: the service's configuration says how its devices are opened", own)
	}
	return nil
}

// shared gives the socket of the service whose device is to be used, empty for a card in this process.
func (s *sharedFlags) shared(device string) (socket string) {
	switch {
	case s.asked():
		return s.socket
	case s.socket == noService || s.own() != "":
		return ""
	}
	names, err := client.Devices(client.DefaultPath)
	if err == nil && slices.Contains(names, device) {
		return client.DefaultPath
	}
	return ""
}
