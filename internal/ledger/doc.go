// Package ledger accounts for every nanosecond that requests waited and that CPUs could have worked. Its sums are exact; what it cannot explain it says.
package ledger
