//go:build race

package labtest

// testsAProcessor is the number of parallel tests per processor. With the race detector they compute more
// than they wait.
const testsAProcessor = 2
