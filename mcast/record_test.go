package mcast

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// sweepAll sweeps the records of namespace 7 and collects what they list.
func sweepAll(t *testing.T, dir string) map[int][]netip.Addr {
	t.Helper()
	found := map[int][]netip.Addr{}
	check(t, sweepRecords(dir, 7, func(index int, addresses []netip.Addr) error {
		slices.SortFunc(addresses, netip.Addr.Compare)
		found[index] = addresses
		return nil
	}))
	return found
}

func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "when needed")
	r := newRecord(dir, 7, 3)
	for i := range 300 {
		check(t, r.add(nth4(i)))
	}
	for i := range 298 {
		check(t, r.remove(nth4(i)))
	}
	long := netip.MustParseAddr("239.255.255.255")
	check(t, r.add(long))
	check(t, r.remove(nth4(999)))
	if !r.has(long) || r.has(nth4(0)) {
		t.Error("has what it has not, or the other way round")
	}
	if info, err := r.file.Stat(); err != nil || info.Size() != 300*recordLine {
		t.Errorf("%d bytes, %v: free lines are not used again", info.Size(), err)
	}
	if found := sweepAll(t, dir); len(found) != 0 {
		t.Errorf("swept while its owner lives: %v", found)
	}
	check(t, r.close())
	if found := sweepAll(t, dir); !reflect.DeepEqual(found, map[int][]netip.Addr{3: {nth4(298), nth4(299), long}}) {
		t.Errorf("swept %v", found)
	}
	if list := records(t, dir); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
}

func TestRecordOfNothing(t *testing.T) {
	dir := t.TempDir()
	r := newRecord(dir, 7, 3)
	check(t, r.add(nth4(1)))
	check(t, r.remove(nth4(1)))
	if list := records(t, dir); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
	check(t, r.close())
	check(t, r.add(nth4(2)))
	check(t, r.remove(nth4(2)))
}

// Other namespaces' records, and what is no record, stay.
func TestSweepLeavesTheRest(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"memberships-77-3-1", "memberships-7-x-1", "memberships-7"} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte("239.1.1.1\n"), 0o600))
	}
	if found := sweepAll(t, dir); len(found) != 0 || len(records(t, dir)) != 3 {
		t.Errorf("swept %v, left %v", found, records(t, dir))
	}
}

func TestSweepReadsWhatItCan(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "memberships-7-3-1"), []byte("239.1.1.1\n\n ff02::1 x\x00 239.1.1.2   \n239.1.1."), 0o600))
	want := map[int][]netip.Addr{3: {netip.MustParseAddr("239.1.1.1"), netip.MustParseAddr("239.1.1.2")}}
	if found := sweepAll(t, dir); !reflect.DeepEqual(found, want) {
		t.Errorf("swept %v", found)
	}
	if found := sweepAll(t, filepath.Join(dir, "none")); len(found) != 0 {
		t.Errorf("swept %v where there is nothing", found)
	}
}

func TestSweepKeepsWhatFailed(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "memberships-7-3-1"), []byte("239.1.1.1\n"), 0o600))
	refused(t, sweepRecords(dir, 7, func(int, []netip.Addr) error { return os.ErrPermission }), os.ErrPermission)
	if len(sweepAll(t, dir)) != 1 {
		t.Error("the record is gone, what it lists is not")
	}
}

func (r *record) has(address netip.Addr) bool {
	_, ok := r.lines[address]
	return ok
}
