import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Network, startNetwork } from '../network.ts'
import { isSigned, Receiver } from '../receiver.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')

/** The options of curl that the README uses, for machines without curl. */
const CURL = `#!${process.execPath}
const { readFileSync } = require('node:fs')
const [url] = process.argv.slice(2).filter(argument => /^https?:/.test(argument))
const options = { headers: {} }
for (let n = 2; n < process.argv.length; n++) {
  if (process.argv[n] === '-X') options.method = process.argv[++n]
  if (process.argv[n] === '-d') options.body = process.argv[++n]
  if (process.argv[n] === '--data-binary') options.body = readFileSync(process.argv[++n].slice(1))
  if (process.argv[n] === '-H') {
    const [name, ...value] = process.argv[++n].split(': ')
    options.headers[name] = value.join(': ')
  }
}
if (options.body !== undefined) options.method ??= 'POST'
fetch(url, options).then(answer => answer.text()).then(text => process.stdout.write(text))
`

/** The block of commands that begins with this line. */
function commandsFrom(firstLine: string): string {
  const block = README.split('```').find(text => text.startsWith(`sh\n${firstLine}`))
  if (block === undefined) throw new Error(`The README has no commands that begin with ${firstLine}`)
  return block.slice('sh\n'.length)
}

describe('the README’s commands, pasted into a shell', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-readme-'))
  let network: Network
  let service: Service
  let receiver: Receiver

  beforeAll(async () => {
    writeFileSync(join(folder, 'curl'), CURL, { mode: 0o755 })
    cpSync(join(import.meta.dirname, '../../docs/screenshots'), join(folder, 'docs/screenshots'), { recursive: true })
    network = await startNetwork()
    service = await new Service({ dataDir: join(folder, 'data'), env: { WHATSAPP_URL: network.url } }).start()
    receiver = await new Receiver().listen()
  })

  afterAll(async () => {
    await service?.dispose()
    await receiver?.close()
    await network?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  function paste(commands: string): Promise<{ stdout: string }> {
    const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` }
    return promisify(execFile)('sh', ['-e', '-c', commands], { cwd: folder, env })
  }

  test('create and connect an instance, send to a number and a group, and receive the signed events', async () => {
    const commands = commandsFrom('BASE=')
      .replaceAll('http://127.0.0.1:3000', service.url ?? '')
      .replaceAll('http://127.0.0.1:4000/events', receiver.url)
    const { stdout } = await paste(commands)
    expect(stdout).not.toContain('"error"')

    await receiver.waitFor(4 * 3 + 3)
    const secret = /"secret":"([^"]+)"/.exec(stdout)?.[1] ?? ''
    expect(receiver.requests.every(request => isSigned(request, secret))).toBe(true)
    const count = Object.groupBy(receiver.events, ({ event }) => event)
    expect(count['message.read']).toHaveLength(4)
    const texts = count['message.received']?.map(({ data }) => data['text'])
    expect(texts?.toSorted()).toEqual(['A picture', 'Are you there?', 'Hi all'])
  })

  test('start linking a real number by QR code', async () => {
    const { id } = await service.admin.createInstance('whatsapp')
    const [connect = ''] = commandsFrom('curl -s -X POST $BASE/admin/v1/instances/$INSTANCE/connect').split('; echo\n')
    await paste(`BASE=${service.url}\nADMIN_KEY=${service.adminKey}\nINSTANCE=${id}\n${connect}`)
    const qr = await until('a QR code', async () => (await service.admin.connection(id)).qr)
    await network.scanQr(qr)
    await service.admin.untilState(id, 'connected')
  })
})
