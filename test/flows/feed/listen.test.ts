import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { incoming } from '../../contract/fixture.ts'
import { findFreePort } from '../../free-port.ts'
import { killOnExit } from '../../kill-on-exit.ts'
import { createReceiver, eventOf, isSigned, isStandardSigned, Receiver } from '../../receiver.ts'
import { TcpProxy } from '../../tcp-proxy.ts'
import { until } from '../../until.ts'
import { ApiHarness, type Created } from '../api/harness.ts'

/** `pombal listen` (docs/feed.md). */

const PROGRAM = join(import.meta.dirname, '../../../bin/pombal.js')

class Listening implements AsyncDisposable {
  output = ''
  readonly exited: Promise<number | null>
  readonly #child: ChildProcess

  /** @param input for the standard input; the token comes from the environment if there is none */
  constructor(args: readonly string[], { token, input }: { token?: string; input?: string } = {}) {
    this.#child = spawn(process.execPath, [PROGRAM, 'listen', ...args], {
      env: { PATH: process.env['PATH'], ...(token !== undefined && { POMBAL_TOKEN: token }) },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    })
    killOnExit(this.#child)
    this.#child.stdin?.end(input)
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', text => {
        this.output += text
      })
    }
    this.exited = new Promise(resolve => this.#child.once('close', resolve))
  }

  async says(text: string): Promise<this> {
    await until(`"${text}"`, () => this.output.includes(text))
    return this
  }

  /** Closes the reading end, as `head` does when it has read enough. */
  closeOutput(): void {
    this.#child.stdout!.destroy()
  }

  async stop(): Promise<number | null> {
    this.#child.kill('SIGINT')
    return this.exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.exited
  }
}

async function receive(api: ApiHarness, { id }: Created, texts: readonly string[]): Promise<void> {
  const lease = await api.lease(id)
  for (const text of texts) await api.store.events.storeIncoming(lease, incoming({ text }), Date.now())
}

const textsOf = (receiver: Receiver) => receiver.requests.map(request => eventOf(request).data['text'])

test('events are posted in order, signed, from the moment of the start; the next start continues', async () => {
  await using api = await ApiHarness.start()
  await using receiver = await createReceiver()
  const instance = await api.createConnected()
  const { body } = await api.call({ path: `/v1/webhooks/${instance.id}`, key: instance.token })
  await receive(api, instance, ['before'])
  const args = ['--forward', receiver.url, '--server', api.url]
  const listening = new Listening(args, { token: instance.token })
  await listening.says('Forwarding to')
  await receive(api, instance, ['one', 'two', 'three'])
  await receiver.waitFor(3)
  expect(textsOf(receiver)).toEqual(['one', 'two', 'three'])
  for (const request of receiver.requests) {
    expect(isSigned(request, body.data.secret)).toBe(true)
    expect(isStandardSigned(request, body.data.secret)).toBe(true)
    expect(request.headers['x-service-event']).toBe('message.received')
    expect(request.headers['x-service-attempt']).toBe('1')
  }
  await listening.says('message.received')
  expect(await listening.stop()).toBe(0)
  const [, cursor] = /--after (\S+)\n/.exec(listening.output)!
  const count = receiver.requests.length
  await receive(api, instance, ['while it was off'])
  await using again = new Listening([...args, '--after', cursor!], { token: instance.token })
  await receiver.waitFor(count + 1)
  expect(textsOf(receiver).slice(count)).toEqual(['while it was off'])
  expect(again.output).not.toContain(instance.token)
})

test('it stops, without an error, when nobody reads its output any more', async () => {
  await using api = await ApiHarness.start()
  await using receiver = await createReceiver()
  const instance = await api.createConnected()
  await using listening = new Listening(['--forward', receiver.url, '--server', api.url], { token: instance.token })
  await listening.says('Forwarding to')
  listening.closeOutput()
  await receive(api, instance, ['one'])
  await receiver.waitFor(1)
  expect(await listening.exited).toBe(0)
  expect(listening.output).not.toContain('EPIPE')
})

test('events wait while the program is down, and are then posted in order', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  // Not a port that the system may give to a connection meanwhile.
  const port = await findFreePort()
  const first = await new Receiver().listen(port)
  await using _listening = new Listening(['--forward', first.url, '--server', api.url, '--after', 'oldest'], {
    input: `${instance.token}\n`,
  })
  await receive(api, instance, ['1'])
  await first.waitFor(() => textsOf(first).includes('1'))
  await first.close()
  await receive(api, instance, ['2', '3'])
  await _listening.says('cannot be reached')
  expect(_listening.output).toContain('Start your program.')
  await using second = await new Receiver().listen(port)
  await receive(api, instance, ['4'])
  await second.waitFor(() => textsOf(second).includes('4'))
  expect(textsOf(second)).toEqual(['2', '3', '4'])
})

test('after a cut connection to the service each event is posted once', async () => {
  await using api = await ApiHarness.start()
  await using receiver = await createReceiver()
  const instance = await api.createConnected()
  const proxy = await TcpProxy.listen(api.url)
  await using listening = new Listening(['--forward', receiver.url, '--server', proxy.url, '--after', 'oldest'], {
    token: instance.token,
  })
  const all: string[] = []
  for (let round = 0; round < 3; round += 1) {
    const texts = Array.from({ length: 20 }, (_, index) => `${round}/${index}`)
    all.push(...texts)
    await receive(api, instance, texts)
    await until('some of them', () => textsOf(receiver).length >= all.length - 15)
    proxy.cut()
  }
  await receiver.waitFor(() => textsOf(receiver).includes('2/19'))
  const received = textsOf(receiver).filter(text => text !== undefined)
  expect([...new Set(received)]).toEqual(all)
  // An event that was posted before a cut is not repeated, because the listener remembers its own cursor.
  expect(received).toHaveLength(all.length)
  expect(listening.output).toContain('Connect')
  await proxy.close()
})

test('an event that the program refuses is tried again, then given up, and the next one follows', async () => {
  await using api = await ApiHarness.start()
  await using receiver = await createReceiver()
  receiver.answerWith(request => ({ kind: 'status', status: eventOf(request).data['text'] === 'bad' ? 500 : 204 }))
  const instance = await api.createConnected()
  await receive(api, instance, ['bad', 'good'])
  await using listening = new Listening(
    ['--forward', receiver.url, '--server', api.url, '--after', 'oldest', '--event', 'message.received'],
    { token: instance.token },
  )
  await receiver.waitFor(() => textsOf(receiver).includes('good'))
  expect(textsOf(receiver)).toEqual(['bad', 'bad', 'bad', 'good'])
  expect(receiver.requests.map(({ headers }) => headers['x-service-attempt'])).toEqual(['1', '2', '3', '1'])
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(2)
  expect(listening.output).toContain('given up')
})

test('it prints where to continue if an error ends it', async () => {
  await using api = await ApiHarness.start()
  await using receiver = await createReceiver()
  const instance = await api.createConnected()
  const args = ['--forward', receiver.url, '--server', api.url]
  await using listening = new Listening(args, { token: instance.token })
  await listening.says('Forwarding to')
  await receive(api, instance, ['one'])
  await listening.says('→ 200')
  const { body } = await api.admin('POST', `/instances/${instance.id}/token`)
  expect(await listening.exited).toBe(1)
  expect(listening.output).toContain('Set POMBAL_TOKEN to the current one')
  const [, cursor] = /--after (\S+)\n/.exec(listening.output)!
  await receive(api, instance, ['while it was off'])
  await using _again = new Listening([...args, '--after', cursor!], { token: body.data.token })
  await receiver.waitFor(2)
  expect(textsOf(receiver)).toEqual(['one', 'while it was off'])
})

test('an error that cannot be retried ends the command with an error message that names the remedy', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  const forward = ['--forward', 'http://127.0.0.1:2/hook', '--server', api.url]
  const { token } = instance
  const cases: [string, Listening][] = [
    ['--forward is missing', new Listening(['--server', api.url], { token })],
    ['--forward must be a URL', new Listening(['--forward', 'localhost:3000'], { token })],
    ['neither a user name nor a password', new Listening(['--forward', 'http://user:pass@localhost:3000'], { token })],
    ['cannot use port 6667', new Listening(['--forward', 'http://localhost:6667'], { token })],
    ['Set POMBAL_TOKEN', new Listening(forward)],
    ['Do not pass the token as an argument', new Listening([...forward, '--token', token])],
    ['Set POMBAL_TOKEN to the current one', new Listening(forward, { token: 'pmb_unknown' })],
    ['--after latest', new Listening([...forward, '--after', '999999'], { token })],
    ['Check --after and --event', new Listening([...forward, '--event', 'message.lost'], { token })],
  ]
  for (const [remedy, listening] of cases) {
    expect(await listening.exited, listening.output).toBe(1)
    expect(listening.output).toContain(remedy)
    expect(listening.output).not.toContain('    at ')
    // The cursor of the start has expired, or there is none.
    expect(listening.output).not.toContain('To continue')
  }
})
