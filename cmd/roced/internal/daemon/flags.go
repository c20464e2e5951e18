package daemon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roced/roced/verbs/client"
	"github.com/spf13/pflag"
)

// Flags name a service, and one of its devices.
type Flags struct {
	Socket string
	Device string // empty: all
}

// Add adds the flags to a command's.
func (s *Flags) Add(f *pflag.FlagSet) {
	f.VarP((*deviceValue)(s), "device", "d", "`name` of the one device to look at (default all)")
	AddDefaultSocket(f, &s.Socket)
}

// deviceValue is the name of a device of the service.
type deviceValue Flags

// Set implements pflag.Value.
func (v *deviceValue) Set(text string) error {
	v.Device = text
	return nil
}

// String implements pflag.Value.
func (v *deviceValue) String() string { return v.Device }

// Type implements pflag.Value.
func (v *deviceValue) Type() string { return "name" }

// Choices are the service's devices; none if the service cannot be reached.
func (v *deviceValue) Choices() []string {
	names, _ := client.Devices(v.Socket)
	return names
}

// AddDefaultSocket is AddSocket for a service that need not be named. The help says the rule and not what follows from
// it here: the manual's pages, which are made of the help, are for everybody.
func AddDefaultSocket(f *pflag.FlagSet, path *string) {
	AddSocket(f, path, "`socket` of the service (default that of ROCED_SOCKET, else "+client.DefaultPath+", else that of your own roced run --loopback)")
	*path = DefaultSocket()
}

const socketFlag = "socket"

// formerFlags are what it was called before, and still may be.
var formerFlags = []string{"service", "daemon"}

// AddSocket adds the flag --socket with the path of the service's socket, or one of some words. It always takes
// a value: --socket PATH and --socket=PATH are the same in all commands.
func AddSocket(f *pflag.FlagSet, path *string, usage string, words ...string) {
	value := &socketValue{path, words}
	f.Var(value, socketFlag, usage)
	for _, former := range formerFlags {
		f.Var(value, former, usage)
		f.Lookup(former).Hidden = true
	}
}

// SocketGiven says whether the flag was given.
func SocketGiven(f *pflag.FlagSet) bool {
	return f.Changed(socketFlag) || slices.ContainsFunc(formerFlags, f.Changed)
}

// socketValue is the value of such a flag. A path has a slash, so that what was meant for something else
// is not taken for one.
type socketValue struct {
	path  *string
	words []string
}

// Set implements pflag.Value.
func (v *socketValue) Set(text string) error {
	if !strings.Contains(text, "/") && !slices.Contains(v.words, text) {
		return fmt.Errorf("write the path of a socket, such as %s or ./roced.sock", client.DefaultPath)
	}
	*v.path = text
	return nil
}

// String implements pflag.Value.
func (v *socketValue) String() string {
	if v.path == nil {
		return ""
	}
	return *v.path
}

// Type implements pflag.Value.
func (v *socketValue) Type() string { return "socket" }
