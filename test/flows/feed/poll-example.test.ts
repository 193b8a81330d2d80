import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { killOnExit } from '../../kill-on-exit.ts'
import { until } from '../../until.ts'

/** The program that docs/feed.md shows under "Poll". */
const [, EXAMPLE] = /```js\n(.*?)```/s.exec(readFileSync(join(import.meta.dirname, '../../../docs/feed.md'), 'utf8'))!

/** Runs the example. @returns what it has done so far: events that it has handled and cursors that it has saved */
function runExample(base: string): { done: string[]; isRunning(): boolean } {
  const before = `const BASE = '${base}', TOKEN = 'x', loadCursor = async () => undefined
    const handle = async id => console.log(id), saveCursor = async cursor => console.log(cursor)\n`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', before + EXAMPLE], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  killOnExit(child)
  onTestFinished(() => void child.kill('SIGKILL'))
  const done: string[] = []
  createInterface({ input: child.stdout }).on('line', line => done.push(line))
  return { done, isRunning: () => child.exitCode === null }
}

test('the example reads on after connections without an answer, and saves each cursor after its event', async () => {
  let calls = 0
  const server = createServer((_, response) => {
    calls += 1
    if (calls === 1) return response.destroy()
    if (calls === 2) {
      response.writeHead(200, { 'content-length': '100' }).write('{"data":')
      return setImmediate(() => response.destroy())
    }
    if (calls > 3) return
    const data = [1, 2].map(number => ({ id: `evt_${number}`, cursor: `${number}.aaaaaaaa`, body: {} }))
    response.end(JSON.stringify({ data, nextCursor: '3.aaaaaaaa' }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const example = runExample(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await until('the page or an end', () => example.done.length === 5 || !example.isRunning())
  expect(example.done).toEqual(['evt_1', '1.aaaaaaaa', 'evt_2', '2.aaaaaaaa', '3.aaaaaaaa'])
})
