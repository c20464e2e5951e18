// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roced/roced/verbs/client"
	"github.com/spf13/pflag"
)

// Flags select a service, and one of its devices.
type Flags struct {
	Socket string
	Device string // empty: all
}

// Add adds the flags to a flag set.
func (s *Flags) Add(f *pflag.FlagSet) {
	f.VarP((*deviceValue)(s), "device", "d", "`name` of the device (default: all)")
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

// Choices returns the names of the service's devices; none if it cannot be reached.
func (v *deviceValue) Choices() []string {
	names, _ := client.Devices(v.Socket)
	return names
}

// AddDefaultSocket is AddSocket with a default. The help states the rule, not its result on this host,
// because it is also the text of the manual pages.
func AddDefaultSocket(f *pflag.FlagSet, path *string) {
	AddSocket(f, path, "`socket` of the service (default: ROCED_SOCKET, otherwise "+client.DefaultPath+", otherwise that of your roced run --loopback)")
	*path = DefaultSocket()
}

const socketFlag = "socket"

// formerFlags are accepted as former names of the flag.
var formerFlags = []string{"service", "daemon"}

// AddSocket adds the flag --socket. Its value is the path of the service's socket, or one of words. The value is
// required, so --socket PATH and --socket=PATH are equivalent in all commands.
func AddSocket(f *pflag.FlagSet, path *string, usage string, words ...string) {
	value := &socketValue{path, words}
	f.Var(value, socketFlag, usage)
	for _, former := range formerFlags {
		f.Var(value, former, usage)
		f.Lookup(former).Hidden = true
	}
}

// SocketGiven reports whether the flag was given.
func SocketGiven(f *pflag.FlagSet) bool {
	return f.Changed(socketFlag) || slices.ContainsFunc(formerFlags, f.Changed)
}

// socketValue is the value of the flag. A path must contain a slash, so that other arguments are not mistaken for a
// path.
type socketValue struct {
	path  *string
	words []string
}

// Set implements pflag.Value.
func (v *socketValue) Set(text string) error {
	if !strings.Contains(text, "/") && !slices.Contains(v.words, text) {
		return fmt.Errorf("must be the path of a socket, such as %s or ./roced.sock", client.DefaultPath)
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
