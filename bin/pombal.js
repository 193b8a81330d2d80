#!/usr/bin/env node
// Plain JavaScript that any Node can read, so that one that is too old gets a sentence and not a syntax error.
import { join } from 'node:path'

const [major, minor] = process.versions.node.split('.').map(Number)
if (major !== 24 || minor < 12) {
  console.error(
    `Pombal needs Node 24.12 or a later 24; this is ${process.versions.node}. "npm start" brings the right one along.`,
  )
  process.exit(1)
}
// Left to itself V8 lets what is young grow to 128 MB, and buffers that nobody uses wait there for as long, outside its heap;
// and glibc keeps apart what each thread has freed. A busy node would hold 130 MB more. And small pieces that glibc holds
// back ("fast bins") are gathered anew for every large one: a tenth of the main thread's time. They read this only as
// they start: the process begins anew, with the same id, pipes and options.
const YOUNG = '--max-semi-space-size'
const isBounded = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some(options => options.includes(YOUNG))
if (!isBounded && !process.connected && process.platform !== 'win32') {
  const args = [process.execPath, `${YOUNG}=16`, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, args, {
    MALLOC_ARENA_MAX: '2',
    GLIBC_TUNABLES: 'glibc.malloc.mxfast=0',
    ...process.env,
  })
}
// Name look-ups for webhooks wait in libuv's threads: four that hang would hold up every other one, and the disk too.
process.env.UV_THREADPOOL_SIZE ??= '32'
// What is compiled once is read again at the next start, which takes a third off it; where nothing can be written, it is
// compiled again. (Node 20 has no such export: it must not be named in an `import` statement.)
const { enableCompileCache } = await import('node:module')
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/pombal'))
await import('../src/main.ts')
