// Package cardtest is queue pairs on a wire in memory, for tests that need no privileges.
package cardtest
