import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeLibraryError, isOfLibrary } from './library-scope.ts'

/** Runs the lines in a separate process that handles library errors. @returns its output and exit code */
function run(lines: string): { printed: string[]; code: number | null } {
  const file = (name: string) => JSON.stringify(join(import.meta.dirname, name))
  const program = `
    const { containLibraryErrors } = await import(${file('library-scope.ts')})
    const { LibraryScope, outsideLibrary } = await import(${file('library-scope.ts')})
    const print = (...words) => console.log(words.filter(Boolean).join(' '))
    const logger = { error: (line, message) => print(message, line.sentence) }
    containLibraryErrors(logger, error => { print('crash', error.message); process.exit(1) })
    const scopeOf = name => new LibraryScope({
      failed: error => print(name, 'failed', error?.message ?? error),
      broke: error => print(name, 'broke', error?.message ?? error),
    })
    const fail = async message => { throw new Error(message) }
    const one = scopeOf('one'), other = scopeOf('other')
    ${lines}`
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', program])
  return { printed: stdout.toString().split('\n').filter(Boolean).sort(), code: status }
}

test('an error is reported to the scope where it happened, on any asynchronous path', () => {
  const { printed, code } = run(`
    const paths = {
      promise: work => work(),
      tick: work => process.nextTick(work),
      microtask: work => queueMicrotask(work),
      immediate: work => setImmediate(work),
      timer: work => setTimeout(work, 1),
      interval: work => { const timer = setInterval(() => { clearInterval(timer); return work() }, 1) },
    }
    for (const [path, start] of Object.entries(paths)) {
      one.run(() => start(() => { fail(path) }))
      if (path !== 'promise') other.run(() => start(() => { throw new Error(path) }))
    }
    const { promise, reject } = Promise.withResolvers()
    one.run(async () => { await promise })
    promise.catch(() => undefined)
    reject(1006)`)
  const paths = ['immediate', 'interval', 'microtask', 'tick', 'timer']
  expect(printed).toEqual(
    [
      'one failed 1006',
      'one failed promise',
      ...paths.flatMap(path => [`one failed ${path}`, `other broke ${path}`]),
    ].sort(),
  )
  expect(code).toBe(0)
})

test('errors after the end of the socket are ignored', () => {
  expect(run(`one.run(() => setTimeout(() => { throw new Error('late') }, 1)); one.end()`)).toEqual({
    printed: [],
    code: 0,
  })
})

test('an error of the service ends the process, even in a call from the library', () => {
  expect(run(`fail('ours')`)).toEqual({ printed: ['crash ours'], code: 1 })
  const called = `const ours = outsideLibrary({ changed() { fail('called') } }); one.run(() => ours.changed())`
  expect(run(called)).toEqual({ printed: ['crash called'], code: 1 })
})

test('an error of the library without a scope is logged, and the process continues', () => {
  const { printed, code } = run(`
    const error = new Error('of no scope')
    error.stack = 'Error: of no scope\\n    at x (file:///srv/node_modules/baileys/lib/Socket/chats.js:1:2)'
    Promise.reject(error)
    Promise.reject(1006)`)
  expect(printed).toEqual(['whatsapp.library_failed', 'whatsapp.library_failed of no scope'])
  expect(code).toBe(0)
})

test('the first file of a stack decides whether an error is the library’s', () => {
  const error = new Error('of the test')
  expect(isOfLibrary(error)).toBe(false)
  error.stack = `Error: x
    at Object.parse (node:internal/x:1:1)
    at decrypt (/srv/node_modules/libsignal/src/session_cipher.js:10:2)
    at #receive (file:///srv/src/whatsapp/link.ts:1:2)`
  expect(isOfLibrary(error)).toBe(true)
  expect(describeLibraryError(error).at).toBe('libsignal/src/session_cipher.js:10:2')
})

test('a log line contains no number, address or key', () => {
  const { sentence } = describeLibraryError(new Error('no session for 5511987654321@s.whatsapp.net'))
  expect(sentence).toBe('no session for …')
})
