// SPDX-License-Identifier: Apache-2.0

package card

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/internal/capability"
	"github.com/spf13/pflag"
)

// InterfaceFlags select a network interface.
type InterfaceFlags struct {
	Device    string
	Namespace string
}

// Add adds the flags to a flag set.
func (i *InterfaceFlags) Add(f *pflag.FlagSet) {
	f.VarP(&cli.Interface{One: &i.Device}, "device", "d", "network `interface`")
	f.StringVar(&i.Namespace, "netns", "", "`name` or file of the network namespace")
}

// Check validates the flags before anything is opened.
func (i *InterfaceFlags) Check() error {
	if i.Device == "" {
		return errors.New("no interface given: use -d, such as -d eth0 (ip link lists interfaces)")
	}
	return nil
}

// Path returns the file of the network namespace; empty for that of the process.
func (i *InterfaceFlags) Path() string { return namespacePath(i.Namespace) }

// Enter returns an error if the process cannot enter the selected namespace.
func (i *InterfaceFlags) Enter() error {
	if i.Namespace == "" {
		return nil
	}
	return cli.RequireCapabilities("--netns", capability.SysAdmin)
}

// namespacePath returns the file of a network namespace given by name (ip-netns(8)) or path; empty for that
// of the process.
func namespacePath(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return filepath.Join("/run/netns", name)
}
