// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/roced/roced/deploy/kubernetes/internal/rig"
	"github.com/roced/roced/internal/waittest"
)

var programs string

func TestMain(m *testing.M) { rig.Main(m, &programs) }

// node contains the configuration of a driver and acts as its kubelet.
type node struct {
	t       *testing.T
	config  Config
	service *rig.Service
	client  *fake.Clientset
	kubelet drapb.DRAPluginClient
}

// claimOf returns an allocated claim.
func claimOf(name, uid, driver, pool string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(uid)},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Request: "verbs", Driver: driver, Pool: pool, Device: "verbs-0000"}},
		}}},
	}
}

const (
	first  = "6f8b0a52-3c3e-4d43-9d07-5a1f4b7b0001"
	second = "6f8b0a52-3c3e-4d43-9d07-5a1f4b7b0002"
)

func newNode(t *testing.T) *node {
	t.Helper()
	folder := t.TempDir()
	n := &node{t: t, service: rig.Start(t, filepath.Join(programs, "roced")), client: fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", UID: "node1"}},
		claimOf("first", first, Name, "node1"), claimOf("second", second, Name, "node1"),
		claimOf("elsewhere", "elsewhere", Name, "node2"), claimOf("other", "other", "gpu.example.com", "node1"), claimOf("path", "../../../etc", Name, "node1"),
	)}
	made := 0
	n.client.PrependReactor("create", "resourceslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		slice := action.(clienttesting.CreateAction).GetObject().(*resourceapi.ResourceSlice)
		made++
		slice.Name = fmt.Sprint(slice.GenerateName, made) // as a real server does
		return false, nil, nil
	})
	n.config = Config{
		Node: "node1", Plugins: filepath.Join(folder, "plugins"), Registry: filepath.Join(folder, "registry"), Service: n.service.Path,
		Libraries: folder, CDI: filepath.Join(folder, "cdi"), Sockets: 130,
	}
	if err := os.Mkdir(n.config.Registry, 0o755); err != nil {
		t.Fatal(err)
	}
	return n
}

// start runs the driver, and connects to it through its registration socket, as the kubelet does. end stops the driver.
func (n *node) start() (end func()) {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := Run(ctx, n.config, n.client, slog.New(slog.DiscardHandler)); err != nil {
			n.t.Error(err)
		}
	})
	end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	n.t.Cleanup(end)
	socket := filepath.Join(n.config.Registry, Name+"-reg.sock")
	registration := registerapi.NewRegistrationClient(n.dial(socket))
	var info *registerapi.PluginInfo
	waittest.Eventually(n.t, "the driver registers", func() (is bool) {
		var err error
		info, err = registration.GetInfo(waittest.Guard(n.t), &registerapi.InfoRequest{})
		return err == nil
	})
	if info.Type != registerapi.DRAPlugin || info.Name != Name || !strings.HasPrefix(info.Endpoint, n.config.Plugins) {
		n.t.Fatalf("registers as %v", info)
	}
	if _, err := registration.NotifyRegistrationStatus(waittest.Guard(n.t), &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
		n.t.Fatal(err)
	}
	n.kubelet = drapb.NewDRAPluginClient(n.dial(info.Endpoint))
	return end
}

func (n *node) dial(path string) *grpc.ClientConn {
	n.t.Helper()
	c, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// prepare prepares a claim, and returns the CDI device and the error text.
func (n *node) prepare(name, uid string) (id, failure string) {
	n.t.Helper()
	r, err := n.kubelet.NodePrepareResources(waittest.Guard(n.t), &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{{Namespace: "default", Name: name, Uid: uid}}})
	if err != nil {
		return "", err.Error()
	}
	one := r.Claims[uid]
	if one.Error != "" {
		return "", one.Error
	}
	if len(one.Devices) != 1 || len(one.Devices[0].CdiDeviceIds) != 1 || one.Devices[0].RequestNames[0] != "verbs" {
		n.t.Fatalf("devices %v", one.Devices)
	}
	return one.Devices[0].CdiDeviceIds[0], ""
}

func (n *node) unprepare(uid string) (failure string) {
	n.t.Helper()
	r, err := n.kubelet.NodeUnprepareResources(waittest.Guard(n.t), &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{{Namespace: "default", Name: "gone", Uid: uid}}})
	if err != nil {
		return err.Error()
	}
	return r.Claims[uid].Error
}

func (n *node) socketOf(uid string) string {
	return filepath.Join(filepath.Dir(n.service.Path), "sockets", "claim-"+uid, "roced.sock")
}

// specifications returns the files that the container runtime reads.
func (n *node) specifications() (text string) {
	n.t.Helper()
	files, err := filepath.Glob(filepath.Join(n.config.CDI, "*"))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, f := range files {
		one, err := os.ReadFile(f)
		if err != nil {
			n.t.Fatal(err)
		}
		text += string(one)
	}
	return text
}

// TestClaim checks that a claim has a socket from preparation to unpreparation, also with repeated calls and after a
// restart of the driver.
func TestClaim(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	end := n.start()
	for range 2 {
		id, failure := n.prepare("first", first)
		if failure != "" || id != "roced.dev/verbs=claim-"+first || !n.service.Answers(n.socketOf(first)) {
			t.Errorf("device %q, %s", id, failure)
		}
	}
	if _, failure := n.prepare("second", second); failure != "" {
		t.Error(failure)
	}
	if text := n.specifications(); strings.Count(text, `"name": "claim-`) != 2 || !strings.Contains(text, filepath.Dir(n.socketOf(first))) {
		t.Errorf("CDI specifications %s", text)
	}
	end()
	n.start()
	if !n.service.Answers(n.socketOf(first)) {
		t.Error("the socket was removed when the driver ended")
	}
	for range 2 {
		if failure := n.unprepare(first); failure != "" {
			t.Error(failure)
		}
	}
	if n.service.Answers(n.socketOf(first)) || !n.service.Answers(n.socketOf(second)) || strings.Contains(n.specifications(), first) {
		t.Errorf("the wrong socket was removed; CDI specifications %s", n.specifications())
	}
}

// TestClaimWithoutAService checks that calls fail without the service, so that the kubelet retries, and that they leave
// no files.
func TestClaimWithoutAService(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start()
	if _, failure := n.prepare("first", first); failure != "" {
		t.Fatal(failure)
	}
	n.service.Kill()
	if _, failure := n.prepare("second", second); !strings.Contains(failure, "reach roced's service") {
		t.Errorf("prepared: %q", failure)
	}
	if failure := n.unprepare(first); !strings.Contains(failure, "reach roced's service") {
		t.Errorf("unprepared: %q", failure)
	}
	n.service.Restart()
	if failure := n.unprepare(first); failure != "" || n.specifications() != "" {
		t.Errorf("%s; CDI specifications %s", failure, n.specifications())
	}
	if there, err := os.ReadDir(filepath.Join(filepath.Dir(n.service.Path), "sockets")); err != nil || len(there) != 0 {
		t.Errorf("sockets %v, %v", there, err)
	}
}

// TestWrongClaims checks that invalid claims create neither sockets nor files.
func TestWrongClaims(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start()
	for name, uid := range map[string]string{"elsewhere": "elsewhere", "other": "other", "path": "../../../etc", "nobody": "nobody", "first": second} {
		if id, failure := n.prepare(name, uid); failure == "" {
			t.Errorf("%s: %s", name, id)
		}
	}
	for _, uid := range []string{"../../../etc", "", "a/b", strings.Repeat("a", 1<<16)} {
		if failure := n.unprepare(uid); failure == "" || len(failure) > 1000 {
			t.Errorf("unprepared %.20q: %s", uid, failure)
		}
	}
	if there, _ := os.ReadDir(filepath.Join(filepath.Dir(n.service.Path), "sockets")); len(there) != 0 || n.specifications() != "" {
		t.Errorf("sockets %v; CDI specifications %s", there, n.specifications())
	}
}

// TestPublishedDevices checks that the number of published devices is that of the sockets, and the length of the
// slices.
func TestPublishedDevices(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start()
	waittest.Eventually(t, "slices", func() bool {
		list, err := n.client.ResourceV1().ResourceSlices().List(waittest.Guard(t), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		devices := 0
		for _, s := range list.Items {
			devices += len(s.Spec.Devices)
			if *s.Spec.NodeName != "node1" || s.Spec.Driver != Name || len(s.Spec.Devices) > resourceapi.ResourceSliceMaxDevices {
				t.Fatalf("%+v", s)
			}
		}
		return devices == n.config.Sockets && len(list.Items) == 2
	})
}
