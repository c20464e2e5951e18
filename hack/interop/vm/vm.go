// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roced/roced/hack/interop/job"
	"github.com/roced/roced/internal/lab"
)

// Config describes the machine to start.
type Config struct {
	Name      string         // name of the machine and host name of the guest
	Image     string         // folder of an image, see Image
	Arch      string         // GOARCH of the image; amd64 if empty
	Namespace *lab.Namespace // namespace of QEMU and Tap; nil without a network
	Tap       string         // interface of the guest's network; no network if empty and without Cards
	Cards     []Card         // network cards of the guest, instead of the one on Tap
	Addresses []string       // addresses of the guest's eth0, such as "10.98.0.2/24"
	MTU       int            // MTU of the guest's eth0
	Memory    int            // in MB; 0 means 512
	CPUs      int            // number of processors; 0 means 1
	Share     string         // folder that the guest mounts as /host; none if empty
	NoRXE     bool           // without Soft-RoCE's rxe0 on eth0
	USO       bool           // the guest receives trains of UDP packets as one frame, see CanUSO
}

// agents is the maximum number of concurrent scripts in a guest.
const agents = 8

// bootTime is the time limit of a boot, which takes about five seconds on an idle machine, and minutes on a busy one.
const bootTime = 15 * time.Minute

// VM is a running virtual machine.
type VM struct {
	config Config
	dir    string // folder of the sockets and the console output
	qemu   *job.Job
	kill   context.CancelFunc // ends QEMU
	ports  chan *port         // idle ports
	all    []*port
}

// Boot starts a machine, and returns when an agent responds.
func Boot(ctx context.Context, config Config) (*VM, error) {
	v := &VM{config: config, ports: make(chan *port, agents)}
	err := v.boot(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("virtual machine %s: %w", config.Name, err), v.Close())
	}
	return v, nil
}

func (v *VM) boot(ctx context.Context) (err error) {
	netOptions, err := v.config.netOptions()
	if err != nil {
		return err
	}
	if v.dir, err = os.MkdirTemp("", "roced-vm-"); err != nil {
		return err
	}
	alive, kill := context.WithCancel(context.Background())
	v.kill = kill
	within := func(start func() error) error { return start() }
	if v.config.Namespace != nil {
		within = v.config.Namespace.Do
	}
	v.qemu = job.Program(v.config.emulator(alive, v.arguments(netOptions)), within)
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	err = v.connect(ctx)
	if err == nil {
		// The request waits until the guest's agent opens its port.
		_, err = v.Run(ctx, "cat /run/ready")
	}
	if err != nil {
		v.kill()
		said, _ := v.qemu.Wait()
		return fmt.Errorf("%w\n%s%s", err, said, v.consoleTail())
	}
	return nil
}

// wireOptions disables checksum and segmentation offloads, so that packets on the TAP are as on a physical link.
const wireOptions = "romfile=,speed=10000,duplex=full,csum=off,guest_csum=off,gso=off," +
	"guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_ecn=off," +
	"host_tso4=off,host_tso6=off,host_ufo=off,host_ecn=off"

// CanUSO reports whether the emulator can pass UDP trains to a guest, which requires QEMU 8.2. The guest requires Linux
// 6.2.
var CanUSO = sync.OnceValues(func() (bool, error) {
	said, err := exec.Command("qemu-system-x86_64", "-device", "virtio-net-pci,help").CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("properties of QEMU's virtio-net-pci: %w: %s", err, said)
	}
	return strings.Contains(string(said), "guest_uso4"), nil
})

// netOptions returns wireOptions with the options of newer emulators.
func (c *Config) netOptions() (string, error) {
	switch can, err := CanUSO(); {
	case err != nil:
		return "", err
	case c.USO && !can:
		return "", errors.New("this QEMU cannot pass UDP trains to a guest (guest_uso4); use QEMU 8.2 or later")
	case c.USO:
		return strings.Replace(wireOptions, "guest_csum=off", "guest_csum=on", 1) + ",guest_uso4=on,guest_uso6=on,host_uso=off", nil
	case can:
		return wireOptions + ",guest_uso4=off,guest_uso6=off,host_uso=off", nil
	}
	return wireOptions, nil
}

// machine contains the architecture-dependent parameters: the emulator's board and processor, and the kernel's console.
type machine struct{ board, processor, console string }

// machines contains the machine of each architecture. They have all features of the emulator, except those that it
// emulates slowly. amd64 has no fast string instructions (ERMS, FSRM), with which the kernel would clear and copy
// memory byte by byte. arm64 has atomic instructions and all page sizes, but no pointer authentication.
var machines = map[string]machine{
	"amd64": {"q35,accel=tcg,usb=off,vmport=off,smbus=off", "max,-erms,-fsrm", "ttyS0"},
	"arm64": {"virt,accel=tcg,usb=off,gic-version=3", "neoverse-n1", "ttyAMA0"},
}

// kernelOptions shortens the boot, and makes the kernel trust the emulated clock.
const kernelOptions = "quiet panic=-1 mitigations=off audit=0 nokaslr tsc=reliable no_timer_check"

func (v *VM) arguments(netOptions string) []string {
	c := v.config
	m := machines[cmp.Or(c.Arch, "amd64")]
	kernel := fmt.Sprintf("%s console=%s vm.name=%s vm.ip=%s", kernelOptions, m.console, c.Name, strings.Join(c.Addresses, ","))
	if c.MTU > 0 {
		kernel += fmt.Sprintf(" vm.mtu=%d", c.MTU)
	}
	if c.NoRXE {
		kernel += " vm.rxe=0"
	}
	for _, card := range c.Cards {
		if card.Model == IGB {
			kernel += " vm.modules=igb"
			break
		}
	}
	args := []string{"-name", c.Name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", m.board, "-cpu", m.processor,
		"-m", strconv.Itoa(max(c.Memory, 512)), "-smp", strconv.Itoa(max(c.CPUs, 1)),
		"-kernel", filepath.Join(c.Image, "vmlinux"), "-initrd", filepath.Join(c.Image, "root.cpio"), "-append", kernel,
		"-chardev", "file,id=console,path=" + v.console(), "-serial", "chardev:console",
		"-device", "virtio-serial-pci,max_ports=16"}
	args = append(args, c.cards(netOptions)...)
	for i := range agents {
		args = append(args,
			"-chardev", fmt.Sprintf("socket,id=agent%d,path=%s,server=on,wait=off", i, v.socket(i)),
			"-device", fmt.Sprintf("virtserialport,chardev=agent%d,name=agent%[1]d", i))
	}
	if c.Share != "" {
		args = append(args, "-virtfs", "local,mount_tag=host,security_model=none,multidevs=remap,path="+c.Share)
	}
	return args
}

func (v *VM) socket(i int) string { return filepath.Join(v.dir, fmt.Sprintf("agent%d", i)) }
func (v *VM) console() string     { return filepath.Join(v.dir, "console") }

// mac returns a locally administered address, which is always the same for a name.
func mac(name string) net.HardwareAddr {
	sum := md5.Sum([]byte(name))
	return net.HardwareAddr{0x52, 0x54, 0x00, sum[0], sum[1], sum[2]}
}

// connect connects to the sockets of all agents when QEMU listens.
func (v *VM) connect(ctx context.Context) error {
	for i := range agents {
		conn, err := v.dial(ctx, v.socket(i))
		if err != nil {
			return err
		}
		p := newPort(conn)
		v.all = append(v.all, p)
		v.ports <- p
	}
	return nil
}

func (v *VM) dial(ctx context.Context, path string) (net.Conn, error) {
	for {
		conn, err := net.Dial("unix", path)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-v.qemu.Done():
			return nil, errors.New("QEMU ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ending returns the exit status of QEMU, if it has ended. It waits up to a second, since the agent may close its
// connection before QEMU ends.
func (v *VM) ending() string {
	select {
	case <-v.qemu.Done():
		said, err := v.qemu.Wait()
		return fmt.Sprintf("; QEMU has ended: %v: %s", err, said)
	case <-time.After(time.Second):
		return ""
	}
}

// consoleTail returns the end of the guest's console output.
func (v *VM) consoleTail() string {
	text, _ := os.ReadFile(v.console())
	return string(text[max(0, len(text)-2000):])
}

// Close kills the machine, which has no persistent state.
func (v *VM) Close() error {
	for _, p := range v.all {
		p.conn.Close()
	}
	if v.qemu != nil {
		v.kill()
		v.qemu.Wait()
	}
	if v.dir == "" {
		return nil
	}
	return os.RemoveAll(v.dir)
}
