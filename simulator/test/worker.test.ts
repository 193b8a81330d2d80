import { createSimulatorWorker } from '@pombal/simulator/worker'
import { expect, it, onTestFinished } from 'vitest'
import { download, files, received, sha256, trust } from './media/media-world.ts'
import { MemoryStorage } from './memory-storage.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './wait.ts'
import { jid, link, startClient, statuses } from './world.ts'

async function startWorker(storage: MemoryStorage) {
  const simulator = await createSimulatorWorker({
    storage,
    mediaFolder: await temporaryFolder(),
    claimedPreKeys: 500,
    timings: { deliveredAfterMs: 20, readAfterMs: 60 },
  })
  onTestFinished(() => simulator.terminate())
  return simulator
}

it('a network in a thread behaves like one in this thread, and its stored state survives the death of the thread', async () => {
  const storage = new MemoryStorage()
  const simulator = await startWorker(storage)
  const client = await link(simulator, 'a')
  const id = await client.send(jid('5511999990001'), 'hello')
  await until(() => statuses(client, id).includes('read'))
  await expect(simulator.writeAs({ from: 'x', to: client.phone, text: 'x' })).rejects.toMatchObject({
    code: 'invalid_argument',
  })
  await simulator.misbehave({ kind: 'cut', account: client.phone })
  await until(() => client.seen.closes.includes(428))
  expect(await simulator.scenario()).toEqual({ seed: 1, rules: [], held: [] })
  await simulator.terminate()
  await expect(simulator.inbox(client.phone)).rejects.toMatchObject({ code: 'closed' })
  client.stop()

  const next = await startWorker(storage)
  await next.openAccount('a')
  const again = startClient(next.url, client.state)
  await until(() => again.isOpen)
  expect(await next.inbox('5511999990001')).toMatchObject([{ id, text: 'hello' }])
  await next.close()
})

it('files pass into and out of a thread', async () => {
  const simulator = await startWorker(new MemoryStorage())
  trust(simulator.media)
  const client = await link(simulator, 'a')
  const media = { type: 'image', bytes: new Uint8Array(files.image), caption: 'a caption' } as const
  const { id } = await simulator.writeAs({ from: '5511999990001', to: client.phone, media })
  expect(await download(await until(() => received(client, id)))).toEqual(files.image)
  expect((await simulator.inbox(client.phone))[0]).toMatchObject({ media: { sha256: sha256(files.image) } })
})

it('a thread that cannot start reports why', async () => {
  const simulator = await startWorker(new MemoryStorage())
  const port = Number(new URL(simulator.url).port)
  const mediaPort = Number(simulator.media.hosts[0]!.split(':')[1])
  await expect(createSimulatorWorker({ mediaPort })).rejects.toMatchObject({ code: 'port_in_use' })
  await expect(createSimulatorWorker({ port })).rejects.toMatchObject({
    code: 'port_in_use',
    message: expect.stringContaining('EADDRINUSE'),
  })
})

it('opening a scope that cannot be read is refused, and the thread continues', async () => {
  const storage = new MemoryStorage()
  const simulator = await startWorker(storage)
  const exits: string[] = []
  simulator.onExit(error => exits.push(error.code))
  storage.scopes.set('bad', new Map([['account', Buffer.from('not JSON')]]))
  await expect(simulator.openAccount('bad')).rejects.toMatchObject({ code: 'failed' })
  await simulator.openAccount('good')
  expect(exits).toEqual([])
})

it('a network in a thread listens on loopback and accepts no orders over HTTP', async () => {
  const { url } = await startWorker(new MemoryStorage())
  const { hostname, host } = new URL(url)
  expect(hostname).toBe('127.0.0.1')
  for (const path of ['/admin/accounts', '/admin/scenario', '/']) {
    expect((await fetch(`http://${host}${path}`)).status).toBe(404)
  }
})
