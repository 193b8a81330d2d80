import { fork } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { MediaAccess, ReceivedMessage } from '@pombal/simulator'
import { downloadMediaMessage, type WAMessage } from 'baileys'
import { expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../temporary-folder.ts'
import { until } from '../wait.ts'
import { jid, startClient } from '../world.ts'
import type { MeasuredCall } from './measured-network.ts'
import { received, trust } from './media-world.ts'

const MIB = 2 ** 20
const FILE_BYTES = 100 * MIB
/** After a file of this size, the heap has reached its usual size, with garbage that is not collected yet. */
const FIRST_FILE_BYTES = 40 * MIB
/** A network that held a file would need more. */
const MAX_GROWTH_BYTES = 32 * MIB
const ECHO = '15005550005'

/** A network in another process. Calls are made one at a time. */
async function startNetwork() {
  const program = fork(fileURLToPath(new URL('./measured-network.ts', import.meta.url)), [await temporaryFolder()])
  onTestFinished(() => void program.kill('SIGKILL'))
  const answer = async <T>(): Promise<T> => (await once(program, 'message'))[0].result
  const started = await answer<{ url: string; media: MediaAccess }>()
  const call = <T>(name: MeasuredCall['name'], ...args: unknown[]): Promise<T> => {
    const answered = answer<T>()
    program.send({ name, args })
    return answered
  }
  return { ...started, call }
}

function* randomChunks(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= MIB) yield randomBytes(MIB)
}

async function digest(source: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of source) hash.update(chunk)
  return hash.digest('hex')
}

const downloaded = async (message: WAMessage) => digest(await downloadMediaMessage(message, 'stream', {}))

it('the memory of the network does not grow with a file: 100 MiB are uploaded, read, echoed and downloaded', async () => {
  const network = await startNetwork()
  trust(network.media)
  const client = startClient(network.url)
  await network.call('scanQr', await until(() => client.seen.qrs[0]))
  await until(() => client.isOpen)
  const path = join(await temporaryFolder(), 'large.pdf')
  const document = { document: { url: path }, mimetype: 'application/pdf', fileName: 'large.pdf' }
  const exchange = async (bytes: number, index: number) => {
    await pipeline(randomChunks(bytes), createWriteStream(path))
    const sha256 = await digest(createReadStream(path))
    await client.sock.sendMessage(jid(ECHO), document)
    expect(await downloaded(await until(() => client.seen.messages[index]?.message))).toBe(sha256)
    expect((await network.call<ReceivedMessage[]>('inbox', ECHO))[index]?.media).toMatchObject({ size: bytes, sha256 })
    return sha256
  }
  await exchange(FIRST_FILE_BYTES, 0)
  const before = await network.call<number>('peakBytes')

  const sha256 = await exchange(FILE_BYTES, 1)
  const media = { type: 'document', path }
  const { id } = await network.call<{ id: string }>('writeAs', { from: '5511999990001', to: client.phone, media })
  expect(await downloaded(await until(() => received(client, id)))).toBe(sha256)

  const growth = (await network.call<number>('peakBytes')) - before
  expect(growth).toBeLessThan(MAX_GROWTH_BYTES)
})
