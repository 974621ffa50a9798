// Package detect holds the causes whystall knows: how each is found in the accounts, and the manual page that
// explains it. A detector is one file: data, a function that claims time, a function that puts it in words.
//
// The room refuses to correct an account, to claim more than one holds, and to call a setting a cause: only time,
// CPU or memory that was lost makes one. What it could not look at it says.
package detect
