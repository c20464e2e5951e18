// Package cardtest is queue pairs on a network in memory, for tests that need no privileges.
package cardtest
