// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// text returns a key with a string that check accepts.
func text(name, want string, check func(string) bool, field func(*Config) *string) key {
	return key{name, want, func(c *Config, value any) bool {
		s, ok := value.(string)
		if ok = ok && check(s); ok {
			*field(c) = s
		}
		return ok
	}}
}

// choice returns a key with one of several strings.
func choice(name string, set func(*Config, string), list ...string) key {
	return key{name, "one of " + quoted(list), func(c *Config, value any) bool {
		s, ok := value.(string)
		if ok = ok && slices.Contains(list, s); ok {
			set(c, s)
		}
		return ok
	}}
}

// mode returns a choice with its own type.
func mode[Mode ~string](name string, field func(*Config) *Mode, list ...Mode) key {
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = string(m)
	}
	return choice(name, func(c *Config, s string) { *field(c) = Mode(s) }, names...)
}

// number returns a key with a number in a range.
func number(name string, least, most int, field func(*Config) *int) key {
	return key{name, fmt.Sprintf("a number from %d to %d", least, most), func(c *Config, value any) bool {
		n, ok := value.(int64)
		if ok = ok && n >= int64(least) && n <= int64(most); ok {
			*field(c) = int(n)
		}
		return ok
	}}
}

// oneOf returns a key with one of several numbers.
func oneOf(name string, field func(*Config) *int, list ...int) key {
	return key{name, "one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]"), func(c *Config, value any) bool {
		n, ok := value.(int64)
		if ok = ok && slices.Contains(list, int(n)); ok {
			*field(c) = int(n)
		}
		return ok
	}}
}

// size returns a key with a number of bytes.
func size(name string, least, most uint64, field func(*Config) *uint64) key {
	want := fmt.Sprintf(`a number of bytes from %d to %d, such as "64MiB" or "1GiB"`, least, most)
	return key{name, want, func(c *Config, value any) bool {
		n, ok := bytes(value)
		if ok = ok && n >= least && n <= most; ok {
			*field(c) = n
		}
		return ok
	}}
}

var units = map[string]uint64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

func bytes(value any) (uint64, bool) {
	switch v := value.(type) {
	case int64:
		return uint64(max(v, 0)), v >= 0
	case string:
		digits := strings.TrimRight(v, "TGMKiB")
		n, err := strconv.ParseUint(digits, 10, 32)
		unit, known := units[v[len(digits):]]
		return n * unit, err == nil && known
	}
	return 0, false
}

// duration returns a key with a duration.
func duration(name string, least, most time.Duration, field func(*Config) *time.Duration) key {
	want := fmt.Sprintf(`a duration from %v to %v with its unit, such as "20us" or "1.5ms"`, least, most)
	return key{name, want, func(c *Config, value any) bool {
		s, ok := value.(string)
		d, err := time.ParseDuration(s)
		if ok = ok && err == nil && d >= least && d <= most; ok {
			*field(c) = d
		}
		return ok
	}}
}

// fileMode returns a key with octal permissions.
func fileMode(name string, field func(*Config) *fs.FileMode) key {
	return key{name, `permissions in octal as a string, such as "0660"`, func(c *Config, value any) bool {
		s, _ := value.(string)
		mode, err := ParseMode(s)
		if err == nil {
			*field(c) = mode
		}
		return err == nil
	}}
}

// ParseMode parses octal permissions up to 0777, as in chmod(1).
func ParseMode(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o777 {
		return 0, fmt.Errorf("permissions must be octal, from 0 to 0777: %q", text)
	}
	return fs.FileMode(n), nil
}

func anyText(string) bool { return true }

func isAbsolute(s string) bool { return filepath.IsAbs(s) }

func isAbsoluteOrEmpty(s string) bool { return s == "" || isAbsolute(s) }

// isSocketPath reports whether a path fits the address of a unix socket with its terminating zero.
func isSocketPath(s string) bool {
	return filepath.IsAbs(s) && len(s) < len(unix.RawSockaddrUnix{}.Path)
}

// isInterface implements dev_valid_name of the kernel.
func isInterface(s string) bool {
	return s != "" && len(s) < unix.IFNAMSIZ && s != "." && s != ".." && !strings.ContainsAny(s, "/: \t\n\v\f\r")
}

var deviceName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func isDeviceName(s string) bool {
	return s == "" || deviceName.MatchString(s) && len(s) <= maxName
}

func isListenAddress(s string) bool {
	if path, is := strings.CutPrefix(s, "unix:"); is {
		return isSocketPath(path)
	}
	_, port, err := net.SplitHostPort(s)
	_, wrong := strconv.ParseUint(port, 10, 16)
	return s == "" || err == nil && wrong == nil
}

func logLevel(level slog.Level) string { return strings.ToLower(level.String()) }

func quoted(list []string) string {
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = strconv.Quote(s)
	}
	return strings.Join(parts, ", ")
}
