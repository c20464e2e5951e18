package doctor

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/daemon"
	"github.com/roced/roced/internal/unit"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// errNoAnswer is a service that had not answered when the doctor was stopped.
var errNoAnswer = errors.New("it has not answered")

func checkService(f *facts) []finding {
	switch {
	case f.service == nil:
		return ok("service", "runs; devices: "+strings.Join(f.deviceNames(), ", "))
	case errors.Is(f.service, errNoAnswer), errors.Is(f.service, os.ErrDeadlineExceeded):
		return says("service", warning, "does not answer", unit.Answering())
	case errors.Is(f.service, unix.EACCES):
		return says("service", warning, "runs, and does not let this user in", "usermod -aG roced USER, and log in again")
	case errors.Is(f.service, unix.ENOENT), errors.Is(f.service, unix.ECONNREFUSED):
		return says("service", note, "does not run", unit.Start()+", if programs are to share devices")
	}
	return says("service", warning, f.service.Error(), unit.Log())
}

func (f *facts) deviceNames() (names []string) {
	for _, d := range f.devices {
		names = append(names, d.Name)
	}
	return names
}

// offers says whether the service has a device of a name, which works.
func (f *facts) offers(name string) bool {
	return slices.ContainsFunc(f.devices, func(d daemon.Device) bool { return d.Name == name && d.Why == "" })
}

// holder is the service's device that is on the interface; empty if none is. An interface of the same
// name in another namespace has another number.
func (f *facts) holder() string {
	index := uint32(f.link.Attrs().Index)
	is := func(e verbs.GIDEntry) bool { return e.IfIndex == index }
	at := slices.IndexFunc(f.devices, func(d daemon.Device) bool {
		return d.Attr.Name == f.link.Attrs().Name && (len(d.GIDs) == 0 || slices.ContainsFunc(d.GIDs, is))
	})
	if at < 0 {
		return ""
	}
	return f.devices[at].Name
}
