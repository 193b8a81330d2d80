import { readdirSync, readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/kit/clock.ts'
import { WhatsappThreads } from '../../../src/whatsapp/threads/whatsapp-threads.ts'
import { captureLog } from '../../logs/log-capture.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

const CONTACT = '5511987654321'

/** Runs a linked instance in a thread. */
async function inThread(harness: WhatsappHarness) {
  const { id, phone, connection: first } = await harness.link()
  await harness.stop(first)
  const log: string[] = []
  const threads = new WhatsappThreads({
    store: harness.store,
    threads: 1,
    media: null,
    settings: { messageTtlMs: 86_400_000 },
    isReplaced: () => false,
    logger: pino({ level: 'trace' }, { write: captureLog }),
    logTo: {
      write(line) {
        captureLog(line)
        log.push(line)
      },
    },
    onRenewalNeeded: () => undefined,
    onThreadDied: () => log.push('died'),
  })
  const renew = () => threads.renewed({ steady: systemClock.steady(), now: systemClock.now() })
  renew()
  const connection = await threads.connect({
    lease: await harness.lease(id),
    network: { kind: 'simulated', url: `ws://127.0.0.1:${harness.line.port}/ws/chat` },
    onLeaseLost: () => undefined,
    onCrashed: () => log.push('crashed'),
  })
  connection.start()
  await until('the login', () => harness.line.sockets === 1)
  await harness.reaches(id, 'connected')
  return { id, phone, log, threads, connection, renew }
}

test('an instance that lost its lease sends no frame, although the leases of its node are valid again', async () => {
  await using harness = await WhatsappHarness.open()
  const { id, threads, connection, renew } = await inThread(harness)
  const { id: message } = await harness.accept(id, CONTACT, 'Before')
  await harness.becomes(id, message, 'read')

  connection.revoke()
  renew()
  await harness.accept(id, CONTACT, 'Not any more')
  await until('the socket to be given up', () => harness.line.sockets === 0)
  expect((await harness.network.inbox(CONTACT)).map(({ text }) => text)).toEqual(['Before'])

  // Its next run, under a new lease, sends it.
  await connection.stop()
  await threads.close()
  const next = await harness.connect(id)
  await until('the text', async () => (await harness.network.inbox(CONTACT)).length === 2)
  await harness.stop(next)
})

test('a result that cannot be sent to a thread fails that call only', async () => {
  await using harness = await WhatsappHarness.open()
  let spoiled = false
  const { connections } = harness.store
  const find = connections.find.bind(connections)
  vi.spyOn(connections, 'find').mockImplementation(async instanceId => {
    const record = await find(instanceId)
    return spoiled && record ? { ...record, toString: () => 'a function cannot be cloned' } : record
  })
  const { id, log, threads, connection } = await inThread(harness)

  spoiled = true
  await harness.store.connections.requestConnect(id, null)
  await until('the call to fail', () => log.some(line => line.includes('DataCloneError')))
  spoiled = false
  const { id: message } = await harness.accept(id, CONTACT, 'In the same thread')
  await harness.becomes(id, message, 'read')
  expect(log).not.toContain('died')
  await connection.stop()
  await threads.close()
})

test.runIf(process.platform === 'linux')('a thread of connections has a lower priority than the API', async () => {
  await using harness = await WhatsappHarness.open()
  const { threads, connection } = await inThread(harness)
  expect(prioritiesOfThreads()).toContain(getPriority() + 4)
  await connection.stop()
  await threads.close()
  await until('the thread to end', () => !prioritiesOfThreads().includes(getPriority() + 4))
})

/** The niceness of each thread of this process: field 19 of its `stat` (proc_pid_stat(5)), where the state is field 3. */
function prioritiesOfThreads(): number[] {
  return readdirSync('/proc/self/task').flatMap(id => {
    try {
      const fields = readFileSync(`/proc/self/task/${id}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
      return [Number(fields[16])]
    } catch {
      // The thread has ended since it was listed.
      return []
    }
  })
}
