import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { contents, download, files, received, trust } from '../../simulator/test/media/media-world.ts'
import { MemoryStorage } from '../../simulator/test/memory-storage.ts'
import { jid, startClient } from '../../simulator/test/world.ts'
import { newInstanceId } from '../../src/domain/ids.ts'
import { Sandbox } from '../../src/sandbox/sandbox.ts'
import type { Store } from '../../src/store/store.ts'
import { until } from '../until.ts'

const ECHO = '15005550005'

type SandboxStore = Pick<Store, 'sandbox' | 'phoneOrders' | 'hints'>

/** The part of the store that one node's sandbox uses, without orders from other nodes. */
function storeOn(storage: MemoryStorage): SandboxStore {
  const sandbox: SandboxStore['sandbox'] = {
    read: async instanceId => new Map(await storage.read(instanceId)),
    write: ({ instanceId }, changes) => storage.write(instanceId, changes),
  }
  const [phoneOrders, hints] = [{ take: async () => [] }, { on: () => () => undefined }]
  return { sandbox, phoneOrders, hints } as unknown as SandboxStore
}

/** Trusts the self-signed certificate of a server on loopback. */
async function trustServerOn(port: number): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  trust({ hosts: [], certificate: socket.getPeerX509Certificate()!.toString() })
  socket.destroy()
}

test('files of a sandbox survive a restart, and the ports of its network are known to be its own', async () => {
  // libsignal prints whole sessions.
  vi.spyOn(console, 'info').mockImplementation(() => undefined)
  const storage = new MemoryStorage()
  const folder = await mkdtemp(join(tmpdir(), 'sandbox-media-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const lease = { instanceId: newInstanceId(), owner: 'node', epoch: 1 }
  const start = async () => {
    const ports: number[] = []
    const sandbox = new Sandbox(storeOn(storage), pino({ level: 'silent' }), port => ports.push(port), folder)
    onTestFinished(() => sandbox.close())
    const network = await sandbox.openNetwork(lease, () => undefined)
    expect(ports).toEqual([Number(new URL(network.url).port), expect.any(Number)])
    await trustServerOn(ports[1]!)
    return { sandbox, network, mediaPort: ports[1]! }
  }

  const first = await start()
  const client = startClient(first.network.url)
  await first.network.linkBy(await until('a QR code', () => client.seen.qrs[0]), null)
  await until('the login', () => client.isOpen)
  await client.sock.sendMessage(jid(ECHO), contents.image)
  const echo = await until('the echo', () => client.seen.messages[0]?.message)
  expect(await download(echo)).toEqual(files.image)
  client.stop()
  await first.sandbox.close()
  expect(await readdir(folder)).toHaveLength(2)

  const second = await start()
  const again = startClient(second.network.url, client.state)
  await until('the login', () => again.isOpen)
  await again.sock.refreshMediaConn()
  expect(await download(await again.sock.updateMediaMessage(echo))).toEqual(files.image)
  await again.sock.sendMessage(jid(ECHO), contents.voice)
  const voice = await until('the second echo', () => again.seen.messages[0]?.message)
  expect(await download(received(again, voice.key.id!)!)).toEqual(files.voice)
  await second.sandbox.forget(lease.instanceId)
  expect(await readdir(folder)).toEqual([])
})

test('if the network cannot store a contact’s message, the call is refused and the cause is logged', async () => {
  const storage = new MemoryStorage()
  const lines: string[] = []
  const logger = pino({ level: 'warn' }, { write: line => lines.push(line) })
  const sandbox = new Sandbox(storeOn(storage), logger)
  onTestFinished(() => sandbox.close())
  const lease = { instanceId: newInstanceId(), owner: 'node', epoch: 1 }
  await sandbox.openNetwork(lease, () => undefined)
  storage.broken = true
  const written = sandbox.writeAs(lease.instanceId, { from: ECHO, text: 'x' })
  await expect(written).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(lines.map(line => JSON.parse(line))).toMatchObject([
    { msg: 'sandbox.write_failed', instanceId: lease.instanceId, err: { message: expect.stringContaining('broken') } },
  ])
})
