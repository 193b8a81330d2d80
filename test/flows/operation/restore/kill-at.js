// Loaded by `node --import`: kills the process before its KILL_AT-th change of the name of a file of the database.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

let left = Number(process.env.KILL_AT)
for (const name of ['linkSync', 'renameSync', 'rmSync']) {
  const original = fs[name]
  fs[name] = (path, ...more) => {
    if (path.includes('pombal.db')) left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
    return original(path, ...more)
  }
}
syncBuiltinESMExports()
