import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, describe, expect, test } from 'vitest'
import { onThisMachine } from '../../deadlines.ts'
import { Service, type ServiceOptions } from '../../service.ts'
import { runCommand } from '../../sessions/run-command.ts'
import { until } from '../../until.ts'

const OLD_NODE = '20.20.2'
const fakeNode = (version: string) =>
  `--import=data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`

const services: Service[] = []
const folders: string[] = []

function makeService(options: ServiceOptions = {}): Service {
  const service = new Service(options)
  services.push(service)
  return service
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-start-'))
  folders.push(folder)
  return folder
}

/** Starts the service and waits until it exits. */
async function startInVain(options: ServiceOptions): Promise<{ code: number | null; output: string; dataDir: string }> {
  const service = makeService(options)
  service.boot()
  const { code } = await service.exited()
  return { code, output: service.output, dataDir: service.dataDir }
}

function hashFiles(folder: string): Record<string, string> {
  const files = readdirSync(folder).filter(name => statSync(join(folder, name)).isFile())
  return Object.fromEntries(
    files.map(name => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  )
}

afterEach(async () => {
  await Promise.all(services.splice(0).map(service => service.dispose()))
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

describe('a start', () => {
  test('prints its address, the paths of data and admin key, and a next step that works unchanged', async () => {
    const service = makeService()
    const url = await service.start().then(() => service.ready())
    const keyFile = join(service.dataDir, 'admin.key')
    expect(service.output).toContain(`listens on ${url}`)
    expect(service.output).toMatch(new RegExp(`Data +${service.dataDir}\n`))
    expect(service.output).toMatch(new RegExp(`Admin key +${keyFile}\n`))
    expect(statSync(keyFile).mode & 0o777).toBe(0o600)

    const next = /curl -s (\S+) -H "Authorization: Bearer \$\(cat '(.+)'\)" \\\n.*-d '(.+)'/.exec(service.output)
    expect(next).not.toBeNull()
    const [, address = '', file = '', body = ''] = next ?? []
    const answer = await fetch(address, {
      method: 'POST',
      headers: { authorization: `Bearer ${readFileSync(file, 'utf8').trim()}`, 'content-type': 'application/json' },
      body,
    })
    expect(answer.status).toBe(201)
  })

  test('names the file of ADMIN_KEY_FILE, as does pombal doctor', async () => {
    const file = join(makeFolder(), 'admin_key')
    writeFileSync(file, randomBytes(32).toString('hex'))
    const service = await makeService({ env: { ADMIN_KEY_FILE: file } }).start()
    expect(service.output).toMatch(new RegExp(`Admin key +${file}\n`))
    expect(service.output).toContain(`-H "Authorization: Bearer $(cat '${file}')"`)
    const { output } = await runCommand(['doctor'], { DATA_DIR: makeFolder(), ADMIN_KEY_FILE: file })
    expect(output).toMatch(new RegExp(`Admin key +In ${file}\\.\n`))
  })

  test("limits V8's memory and helper threads and malloc's arenas, and keeps its process ID and options; a limit set by the operator stays", async () => {
    const show =
      '--import=data:text/javascript,console.log(process.pid,process.env.MALLOC_ARENA_MAX,process.execArgv.join())'
    const service = await makeService({ nodeOptions: [show] }).start()
    const helpers = Math.min(4, Math.max(1, availableParallelism() - 1))
    expect(service.output).toContain(
      `${service.pid} 2 --max-semi-space-size=8,--expose-gc,--v8-pool-size=${helpers},${show}\n`,
    )
    const other = await makeService({ nodeOptions: [show, '--v8-pool-size=3'] }).start()
    expect(other.output).toContain(`${other.pid} 2 --max-semi-space-size=8,--expose-gc,${show},--v8-pool-size=3\n`)
    const own = await makeService({ nodeOptions: [show, '--max-semi-space-size=32'] }).start()
    expect(own.output).toContain(`${own.pid} undefined ${show},--max-semi-space-size=32\n`)
    expect(own.output).not.toContain('semi-space-size=8')
  })

  test('gives each address of a name 2 s to connect, in each thread; a limit set by the operator stays', async () => {
    const show =
      '--import=data:text/javascript,import{getDefaultAutoSelectFamilyAttemptTimeout}from"node:net";' +
      'import{threadName}from"node:worker_threads";' +
      'setInterval(()=>console.log(threadName||"main",getDefaultAutoSelectFamilyAttemptTimeout()),100).unref()'
    const untilBothWait = async (ms: number, options: readonly string[]) => {
      const service = await makeService({ env: { SANDBOX: 'on' }, nodeOptions: [show, ...options] }).start()
      await service.admin.createConnected()
      for (const thread of ['main', 'whatsapp'])
        await until(`the ${thread} thread to wait ${ms} ms`, () => service.output.includes(`${thread} ${ms}\n`))
    }
    await untilBothWait(2_000, [])
    await untilBothWait(3_000, ['--network-family-autoselection-attempt-timeout=3000'])
  })

  test('stops on SIGTERM and on SIGINT with exit 0', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const service = await makeService().start()
      expect(await service.kill(signal)).toEqual({ code: 0, signal: null })
    }
  })

  test('stops with exit 0 even during its start', async () => {
    const silent = createTcpServer()
    const reached = once(silent, 'connection')
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const service = makeService({
      env: {
        DATABASE_URL: `postgres://pombal@127.0.0.1:${port}/pombal`,
        ADMIN_KEY: randomBytes(32).toString('hex'),
        MASTER_KEY: randomBytes(32).toString('base64'),
      },
    })
    service.boot()
    const [socket] = await reached
    expect(await service.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    socket.destroy()
    silent.close()
  })

  test('stops even if nothing reads its output any more', async () => {
    const service = await makeService().start()
    service.closeOutput()
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
    expect(await service.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  })

  test('releases every lease immediately when it stops, even while a slow caller is still being answered', async () => {
    const service = await makeService().start()
    const { token } = await service.admin.createConnected()
    const body = JSON.stringify({ to: '15005550003', text: 'hello' })
    const head =
      `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`
    const { port, hostname } = new URL(service.url!)
    const caller = connect(Number(port), hostname)
    let answer = ''
    caller.setEncoding('latin1').on('data', text => {
      answer += text
    })
    caller.write(head)
    await until('the call to be under way', () => answer.includes(' 100 Continue'))

    const database = new Sqlite(join(service.dataDir, 'pombal.db'), { readonly: true })
    const owner = database.prepare('select owner from leases').pluck()
    expect(owner.get()).not.toBeNull()
    service.signal('SIGTERM')
    await until('the lease to be given up', () => owner.get() === null, onThisMachine(4_000))
    database.close()
    caller.write(body)
    await until('the answer', () => answer.includes('"queued"'))
    expect(await service.exited()).toEqual({ code: 0, signal: null })
  })

  test('with bad settings lists every problem, creates nothing and exits 1', async () => {
    const dataDir = join(makeFolder(), 'data')
    const env = {
      PORT: '99999',
      LOG_LEVEL: 'loud',
      DATABASE_URL: 'mysql://somewhere',
      ADMIN_KEY: 'short',
      MASTER_KEY: 'not base64',
      WEBHOOK_RETRY_DELAYS_MS: '1,two',
      WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/99',
      WHATSAPP_URL: 'wss://web.whatsapp.com/ws/chat',
    }
    const { code, output } = await startInVain({ dataDir, env })
    expect(code).toBe(1)
    for (const name of Object.keys(env)) expect(output).toMatch(new RegExp(`- ${name} must be`))
    expect(output).not.toContain('    at ')
    expect(existsSync(dataDir)).toBe(false)
  })

  test('with PostgreSQL but without the shared keys exits 1', async () => {
    const { code, output } = await startInVain({ env: { DATABASE_URL: 'postgres://127.0.0.1:1/none' } })
    expect(code).toBe(1)
    expect(output).toMatch(/ADMIN_KEY is required/)
    expect(output).toMatch(/MASTER_KEY is required/)
  })

  test('with a PostgreSQL that does not answer prints a clear error message and exits 1', async () => {
    const { code, output } = await startInVain({
      env: {
        DATABASE_URL: 'postgres://pombal:confidential@127.0.0.1:1/none',
        ADMIN_KEY: 'k'.repeat(32),
        MASTER_KEY: randomBytes(32).toString('base64'),
      },
    })
    expect(code).toBe(1)
    expect(output).toMatch(/cannot start:\n {2}- .+\n$/)
    expect(output).not.toMatch(/confidential| {4}at /)
  })

  test('on a folder in use by another process is refused, and that process continues', async () => {
    const first = await makeService().start()
    const { code, output } = await startInVain({ dataDir: first.dataDir })
    expect(code).toBe(1)
    expect(output).toContain(first.dataDir)
    expect(output).toMatch(/cannot start:\n {2}- .+\.\n$/)
    expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
  })

  test('on the data folder of a killed process serves immediately', async () => {
    const service = await makeService().start()
    const { id } = await service.admin.createInstance('whatsapp')
    await service.restart('SIGKILL')
    expect(await service.admin.connection(id)).toMatchObject({ state: 'unlinked' })
  })

  test('writes files that only its own user can read, even in a shared folder', async () => {
    const dataDir = makeFolder()
    chmodSync(dataDir, 0o755)
    const service = await makeService({ dataDir }).start()
    await service.admin.createInstance('whatsapp')
    const open = readdirSync(dataDir).filter(name => (statSync(join(dataDir, name)).mode & 0o077) !== 0)
    expect(open).toEqual([])
  })

  test('with the sandbox off, sandbox instances are stopped and accept nothing; with the sandbox on again, they work', async () => {
    const dataDir = makeFolder()
    const on = await makeService({ dataDir }).start()
    const { id, token } = await on.admin.createInstance('sandbox')
    const state = (service: Service) => service.admin.connection(id).then(connection => connection.state)
    await until('the sandbox', async () => (await state(on)) === 'connected')
    expect(on.output).toContain('set SANDBOX=off')
    await on.kill('SIGTERM')

    const off = await makeService({ dataDir, env: { SANDBOX: 'off' } }).start()
    await until('the word', async () => (await state(off)) === 'stopped')
    expect((await off.admin.connection(id)).reason).toContain('SANDBOX=on')
    expect(off.output).not.toContain('set SANDBOX=off')
    await expect(off.instance(id, token).send('5511987654321', 'hello')).rejects.toMatchObject({
      code: 'instance_not_connected',
    })
    expect(off.logLines.filter(({ level }) => level >= 50)).toEqual([])
    await off.kill('SIGTERM')

    const again = await makeService({ dataDir }).start()
    await until('the sandbox', async () => (await state(again)) === 'connected')
  })

  test.each([
    { dataDir: '/dev/null/data', complaint: '/dev/null/data' },
    { env: { HOST: 'nowhere.invalid' }, complaint: 'nowhere.invalid is not an address of this machine: set HOST' },
    { env: { HOST: '192.0.2.1' }, complaint: '192.0.2.1 is not an address of this machine: set HOST' },
  ])('where the system refuses $complaint prints a clear error and exits 1', async ({ complaint, ...options }) => {
    const { code, output } = await startInVain(options)
    expect(code).toBe(1)
    expect(output).toContain(complaint)
    expect(output).not.toContain('    at ')
  })

  test('on a taken port names the port and exits 1', async () => {
    const holder = createServer()
    await new Promise<void>(resolve => holder.listen(0, '127.0.0.1', resolve))
    const { port } = holder.address() as AddressInfo
    try {
      const { code, output } = await startInVain({ env: { PORT: String(port) } })
      expect(code).toBe(1)
      expect(output).toMatch(new RegExp(`Port ${port} of 127.0.0.1 is in use`))
      expect(output).not.toContain('    at ')
    } finally {
      holder.close()
    }
  })

  test('with a master key that does not match the data is refused before anything is written', async () => {
    const dataDir = makeFolder()
    const first = makeService({ dataDir })
    await first.start()
    await first.admin.createInstance('whatsapp')
    await first.kill('SIGTERM')
    const before = hashFiles(dataDir)

    const { code, output } = await startInVain({ dataDir, env: { MASTER_KEY: randomBytes(32).toString('base64') } })
    expect(code).toBe(1)
    expect(output).toMatch(/master key does not match the data/)
    expect(output).not.toContain('    at ')
    expect(hashFiles(dataDir)).toEqual(before)
    await makeService({ dataDir }).start()
  })

  test('without the right Node says which one it needs, and exits 1', async () => {
    for (const version of [OLD_NODE, '24.11.1', '25.0.0']) {
      const { code, output } = await startInVain({ nodeOptions: [fakeNode(version)] })
      expect(code).toBe(1)
      expect(output).toMatch(/^Pombal needs Node 24\.12 or a later 24; this is \S+, .+\n$/)
      expect(output).toContain(version)
    }
  })
})
