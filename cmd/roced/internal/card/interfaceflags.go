package card

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/internal/capability"
	"github.com/spf13/pflag"
)

// InterfaceFlags name a network interface.
type InterfaceFlags struct {
	Device    string
	Namespace string
}

// Add adds the flags to a command's.
func (i *InterfaceFlags) Add(f *pflag.FlagSet) {
	f.VarP(&cli.Interface{One: &i.Device}, "device", "d", "network `interface` to make a card of")
	f.StringVar(&i.Namespace, "netns", "", "`name` or file of the network namespace to be in")
}

// Check finds mistakes before anything is opened.
func (i *InterfaceFlags) Check() error {
	if i.Device == "" {
		return errors.New("name an interface with -d, such as -d eth0; ip link lists them")
	}
	return nil
}

// Path is the file of the network namespace, empty for the process's own.
func (i *InterfaceFlags) Path() string { return namespacePath(i.Namespace) }

// Enter says whether the process may enter the namespace, if one is named.
func (i *InterfaceFlags) Enter() error {
	if i.Namespace == "" {
		return nil
	}
	return cli.RequireCapabilities("--netns", capability.SysAdmin)
}

// namespacePath is the file of a network namespace: of a name as ip-netns(8) gives it,
// or a path as it is. Empty stands for the process's own.
func namespacePath(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return filepath.Join("/run/netns", name)
}
