package unit

import (
	"os"
	"path/filepath"
)

// name is the service's unit.
const name = "roced.service"

// folders have units, as systemd.unit(5) lists them.
var folders = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// Start is how the service is started.
func Start() string {
	return advise("/", "systemctl start roced", "roced run --device INTERFACE starts it")
}

// Running is advice on a service that cannot be reached.
func Running() string {
	return "is it running? " + advise("/", "systemctl status roced", "roced run --device INTERFACE starts it")
}

// Answering is advice on a service that does not answer.
func Answering() string {
	return "is it stopped? " + advise("/", "systemctl status roced", "ps -C roced shows its process")
}

// Log is where the service's messages are.
func Log() string {
	return advise("/", "journalctl -u roced", "its messages are on its standard error")
}

// advise returns managed where systemd runs (sd_booted(3)) and has the unit, below a root folder, else plain.
func advise(root, managed, plain string) string {
	if _, err := os.Stat(filepath.Join(root, "/run/systemd/system")); err != nil {
		return plain
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(root, folder, name)); err == nil {
			return managed
		}
	}
	return plain
}
