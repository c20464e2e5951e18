// SPDX-License-Identifier: Apache-2.0

package container

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Kind names the devices, in CDI and as a resource of Kubernetes.
const Kind = "roced.dev/verbs"

// Where a container has the socket and the libraries, those for musl in a folder of their own. Of the list glibc's loader
// takes the first folder, and musl's, to which ; is a letter, the last one.
const (
	socketInside    = "/run/roced"
	librariesInside = "/usr/lib/roced"
	librarySearch   = librariesInside + ";" + librariesInside + ":" + librariesInside + "/musl"
)

// Env is the environment that programs find roced by.
func Env() map[string]string {
	return map[string]string{"ROCED_SOCKET": socketInside + "/roced.sock", "LD_LIBRARY_PATH": librarySearch}
}

// Mount is a folder of the host that a container gets, read-only.
type Mount struct{ Host, Container string }

// Device is a device as the host knows it.
type Device struct {
	Name      string
	Socket    string // folder with the socket
	Libraries string // folder
}

// NewDevice is the device whose socket has that name at a service.
func NewDevice(service, name, libraries string) Device {
	return Device{name, filepath.Join(filepath.Dir(service), "sockets", name), libraries}
}

// ID is the name that CDI knows the device by.
func (d Device) ID() string { return Kind + "=" + d.Name }

// Mounts are the folders that its container gets.
func (d Device) Mounts() []Mount {
	return []Mount{{d.Socket, socketInside}, {d.Libraries, librariesInside}}
}

// The specification of CDI 0.5.0, which containerd from 1.7 and CRI-O from 1.23 on read.
type (
	specification struct {
		Version string         `json:"cdiVersion"`
		Kind    string         `json:"kind"`
		Devices []deviceInSpec `json:"devices"`
	}
	deviceInSpec struct {
		Name  string `json:"name"`
		Edits edits  `json:"containerEdits"`
	}
	edits struct {
		Env    []string      `json:"env"`
		Mounts []mountInSpec `json:"mounts"`
	}
	mountInSpec struct {
		Host      string   `json:"hostPath"`
		Container string   `json:"containerPath"`
		Options   []string `json:"options"`
	}
)

func (d Device) inSpec() deviceInSpec {
	s := deviceInSpec{Name: d.Name}
	env := Env()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		s.Edits.Env = append(s.Edits.Env, name+"="+env[name])
	}
	for _, m := range d.Mounts() {
		s.Edits.Mounts = append(s.Edits.Mounts, mountInSpec{m.Host, m.Container, []string{"ro", "nosuid", "nodev", "bind"}})
	}
	return s
}

// WriteSpecification writes the CDI file of the devices. It replaces the file atomically.
func WriteSpecification(file string, devices ...Device) error {
	s := specification{Version: "0.5.0", Kind: Kind}
	for _, d := range devices {
		s.Devices = append(s.Devices, d.inSpec())
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	temporary := file + ".new" // runtimes read only names that end in .json
	if err := os.WriteFile(temporary, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
