package show

import (
	"bytes"
	"strings"
	"testing"
)

// TestScreen: nothing above it is erased, it shows what fits, and the screen of before comes back.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := openScreen(&out)
	s.height = func() int { return 4 }
	for _, text := range []string{"1\n2\n3\n4\n5\n", "1\n2\n"} {
		if _, err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	want := enterScreen + "\x1b[H1\x1b[K\r\n2\x1b[K\r\n… and 3 more\x1b[K\r\n\x1b[J" + "\x1b[H1\x1b[K\r\n2\x1b[K\r\n\x1b[J" + leaveScreen
	if got := out.String(); got != want || strings.Contains(got, "\x1b[3J") {
		t.Errorf("%q, want %q", got, want)
	}
}

type cells []string

func (c cells) cells() []string { return c }

// TestTable: numbers end in one column, all else begins in one.
func TestTable(t *testing.T) {
	got := table([]string{"NAME", "VALUE", ""}, []row{cells{"a", "1,234", ""}, cells{"longer", "5", "lost"}})
	want := "NAME    VALUE\na       1,234\nlonger      5  lost\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := table([]string{"NAME", "VALUE"}, nil); got != "NAME  VALUE\n" {
		t.Errorf("%q", got)
	}
}
