// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/deploy/kubernetes/internal/rig"
	"github.com/roced/roced/internal/waittest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// node contains a kubelet, a service and the configuration of a plugin.
type node struct {
	*kubelet
	service *rig.Service
	config  Config
}

const sockets = 8

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{kubelet: startKubelet(t), service: rig.Start(t, filepath.Join(programs, "roced"))}
	n.config = Config{
		Kubelet: n.folder, Service: n.service.Path, Libraries: t.TempDir(),
		CDI: filepath.Join(t.TempDir(), "cdi", "roced.json"), Sockets: sockets,
	}
	return n
}

// startPlugin starts a node with a plugin in this process, and waits until its devices are healthy.
func startPlugin(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	p, err := New(n.config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	n.registered(1)
	n.await(api.Healthy, sockets)
	return n
}

// socketOf returns the path of a container's socket.
func socketOf(r *api.AllocateResponse, container int) string {
	return filepath.Join(r.ContainerResponses[container].Mounts[0].HostPath, "roced.sock")
}

func (n *node) mustAllocate(id string) string {
	n.t.Helper()
	r, err := n.allocate([]string{id})
	if err != nil {
		n.t.Fatal(err)
	}
	return socketOf(r, 0)
}

// TestAllocation checks that a container gets a folder with its own socket, the libraries, the environment, and an
// equivalent CDI device.
func TestAllocation(t *testing.T) {
	t.Parallel()
	n := startPlugin(t)
	if r := n.registered(1); r.ResourceName != "roced.dev/verbs" || r.Version != "v1beta1" || !r.Options.PreStartRequired {
		t.Errorf("registered as %v", r)
	}
	r, err := n.allocate([]string{"kube-0003"}, []string{"kube-0005", "kube-0004"})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"kube-0003", "kube-0004"} {
		c := r.ContainerResponses[i]
		if !n.service.Answers(socketOf(r, i)) {
			t.Errorf("no service responds at %s", socketOf(r, i))
		}
		if len(c.Mounts) != 2 || c.Mounts[1].HostPath != n.config.Libraries || !c.Mounts[0].ReadOnly || !c.Mounts[1].ReadOnly {
			t.Errorf("mounts %v", c.Mounts)
		}
		if c.Envs["ROCED_SOCKET"] != c.Mounts[0].ContainerPath+"/roced.sock" || c.Envs["LD_LIBRARY_PATH"] != strings.ReplaceAll("LIB;LIB:LIB/musl", "LIB", c.Mounts[1].ContainerPath) {
			t.Errorf("environment %v, mounts %v", c.Envs, c.Mounts)
		}
		if len(c.CdiDevices) != 1 || c.CdiDevices[0].Name != "roced.dev/verbs="+name {
			t.Errorf("CDI devices %v", c.CdiDevices)
		}
	}
	n.checkSpecification(r.ContainerResponses[0])
}

// checkSpecification compares the CDI specification with the response without CDI.
func (n *node) checkSpecification(c *api.ContainerAllocateResponse) {
	n.t.Helper()
	text, err := os.ReadFile(n.config.CDI)
	if err != nil {
		n.t.Fatal(err)
	}
	var s struct {
		CDIVersion, Kind string
		Devices          []struct {
			Name           string
			ContainerEdits struct {
				Env    []string
				Mounts []struct{ HostPath, ContainerPath string }
			}
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		n.t.Fatal(err)
	}
	if s.CDIVersion != "0.5.0" || len(s.Devices) != sockets {
		n.t.Fatalf("%s", text)
	}
	d := s.Devices[3]
	if s.Kind+"="+d.Name != c.CdiDevices[0].Name || len(d.ContainerEdits.Mounts) != len(c.Mounts) || len(d.ContainerEdits.Env) != len(c.Envs) {
		n.t.Errorf("%+v, without CDI: %v", d, c)
	}
	for i, m := range d.ContainerEdits.Mounts {
		if m.HostPath != c.Mounts[i].HostPath || m.ContainerPath != c.Mounts[i].ContainerPath {
			n.t.Errorf("mount %v, without CDI %v", m, c.Mounts[i])
		}
	}
	for _, e := range d.ContainerEdits.Env {
		if name, value, _ := strings.Cut(e, "="); c.Envs[name] != value {
			n.t.Errorf("%s, without CDI %v", e, c.Envs)
		}
	}
}

// TestReallocation checks that the previous container loses access: its connections end, and its mounted folder is
// empty.
func TestReallocation(t *testing.T) {
	t.Parallel()
	n := startPlugin(t)
	path := n.mustAllocate("kube-0000")
	old, err := os.Open(filepath.Dir(path)) // like a mount
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n.mustAllocate("kube-0000") != path || !n.service.Answers(path) {
		t.Error("the new container has no socket")
	}
	if _, err := c.Read(make([]byte, 1<<16)); err == nil {
		t.Error("the old connection has not ended")
	}
	if _, err := net.Dial("unixpacket", fmt.Sprintf("/proc/self/fd/%d/roced.sock", old.Fd())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in the old folder: %v", err)
	}
}

// TestBeforeAStart checks that PreStartContainer recreates a socket after a reboot, when /run is empty, and keeps an
// existing one.
func TestBeforeAStart(t *testing.T) {
	t.Parallel()
	n := startPlugin(t)
	path := n.mustAllocate("kube-0001")
	before := func(id string) error {
		_, err := n.plugin.PreStartContainer(waittest.Guard(t), &api.PreStartContainerRequest{DevicesIds: []string{id}})
		return err
	}
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := before("kube-0001"); err != nil {
		t.Error(err)
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(first, now) {
		t.Errorf("the socket has changed: %v", err)
	}
	if err := n.service.RemoveSocket(waittest.Guard(t), "kube-0001"); err != nil {
		t.Fatal(err)
	}
	if err := before("kube-0001"); err != nil || !n.service.Answers(path) {
		t.Errorf("no service responds: %v", err)
	}
	if err := before("other"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("unknown device: %v", err)
	}
}

// TestWrongRequests checks that invalid requests are rejected and remove no socket, and that a request for all devices
// is valid.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	n := startPlugin(t)
	path := n.mustAllocate("kube-0000")
	first, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	many := make([]string, 100_000)
	for i := range many {
		many[i] = "kube-0000"
	}
	for name, containers := range map[string][][]string{
		"unknown":            {{"kube-0008"}},
		"of a path":          {{"../../etc"}},
		"empty":              {{""}},
		"long":               {{strings.Repeat("x", 1<<20)}},
		"none":               {{}},
		"one is unknown":     {{"kube-0000"}, {"kube-9999"}},
		"one of several":     {{"kube-0000", "nothing"}},
		"for two containers": {{"kube-0000"}, {"kube-0000"}},
		"many":               {many},
	} {
		if _, err := n.allocate(containers...); status.Code(err) != codes.InvalidArgument || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(first, now) {
		t.Errorf("the socket of a container has changed: %v", err)
	}
	var all [][]string
	for i := range sockets {
		all = append(all, []string{fmt.Sprintf("kube-%04d", i)})
	}
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			if _, err := n.allocate(all...); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if there, err := os.ReadDir(filepath.Join(filepath.Dir(n.service.Path), "sockets")); err != nil || len(there) != sockets {
		t.Errorf("%d sockets, %v", len(there), err)
	}
}

// TestHowManySockets checks the limits on the number of sockets.
func TestHowManySockets(t *testing.T) {
	t.Parallel()
	for _, many := range []int{-1, 0, MaxSockets + 1} {
		if _, err := New(Config{Sockets: many}, nil); err == nil {
			t.Errorf("%d sockets", many)
		}
	}
	if p, err := New(Config{Sockets: MaxSockets}, nil); err != nil || len(p.names) != MaxSockets {
		t.Errorf("%d sockets: %v", MaxSockets, err)
	}
}
