// SPDX-License-Identifier: Apache-2.0

package deviceplugin

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/roced/roced/deploy/kubernetes/internal/rig"
	"github.com/roced/roced/internal/waittest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// TestKubeletRestarts checks that the plugin registers again, and that containers keep their sockets.
func TestKubeletRestarts(t *testing.T) {
	t.Parallel()
	n := startPlugin(t)
	path := n.mustAllocate("kube-0002")
	for times := range 2 {
		n.stop()
		n.start()
		n.registered(2 + times)
		n.await(api.Healthy, sockets)
		if !n.service.Answers(path) {
			t.Error("a container's socket has gone")
		}
	}
	n.mustAllocate("kube-0003")
}

// TestServiceIsKilled checks that containers get no sockets without the service, and that a restarted service has the
// earlier sockets.
func TestServiceIsKilled(t *testing.T) {
	t.Parallel()
	n := startPlugin(t)
	path := n.mustAllocate("kube-0002")
	n.service.Kill()
	n.await(api.Unhealthy, sockets)
	if _, err := n.allocate([]string{"kube-0003"}); status.Code(err) != codes.Unavailable {
		t.Errorf("without a service: %v", err)
	}
	n.service.Restart()
	n.await(api.Healthy, sockets)
	if !n.service.Answers(path) {
		t.Error("a container's socket has gone")
	}
	n.mustAllocate("kube-0003")
}

// TestPluginIsKilled checks that a restarted plugin works although the socket of the killed one still exists.
func TestPluginIsKilled(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	start := func(times int) *rig.Process {
		t.Helper()
		p := rig.Run(t, filepath.Join(programs, "roced-device-plugin"), "-kubelet", n.config.Kubelet, "-service", n.config.Service,
			"-libraries", n.config.Libraries, "-install=", "-cdi", n.config.CDI, "-sockets", strconv.Itoa(sockets))
		n.registered(times)
		n.await(api.Healthy, sockets)
		return p
	}
	p := start(1)
	if err := Check(waittest.Guard(t), n.config.Kubelet); err != nil {
		t.Error(err)
	}
	path := n.mustAllocate("kube-0002")
	p.Kill()
	if err := Check(waittest.Guard(t), n.config.Kubelet); err == nil {
		t.Error("a killed plugin responds")
	}
	n.mu.Lock()
	n.list = nil
	n.mu.Unlock()
	start(2)
	if !n.service.Answers(path) {
		t.Error("a container's socket has gone")
	}
	n.mustAllocate("kube-0003")
}
