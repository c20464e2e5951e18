package fault

import (
	"strings"
	"testing"
)

func TestContain(t *testing.T) {
	if f := Contain(func() {}); f != nil {
		t.Errorf("nothing went wrong: %v", f)
	}
	f := Contain(func() { panic("a mistake") })
	if f == nil || f.Cause != "a mistake" || !strings.Contains(f.Error(), "a mistake") || !strings.Contains(string(f.Stack), "TestContain") {
		t.Errorf("%+v", f)
	}
}
