import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../deadlines.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** A pipe holds 64 KiB, and every call is logged in 200 bytes or more. */
const CALLS = 1_000

const cleanUps: (() => void)[] = []
let service: Service | undefined

afterEach(async () => {
  await service?.dispose()
  service = undefined
  for (const cleanUp of cleanUps.splice(0)) cleanUp()
})

function open(path: string, flags: number): number {
  const descriptor = openSync(path, flags)
  cleanUps.push(() => closeSync(descriptor))
  return descriptor
}

/** Both ends of a pipe. */
function makePipe(): { reader: number; writer: number } {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-pipe-'))
  cleanUps.push(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return { reader, writer: open(path, constants.O_WRONLY) }
}

/** The present content of the pipe. */
function drain(reader: number): string {
  const buffer = Buffer.alloc(65_536)
  let text = ''
  try {
    for (let length = 1; length > 0; ) {
      length = readSync(reader, buffer)
      text += buffer.toString('utf8', 0, length)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
  }
  return text
}

/** The service does all its work while it has a lot to log. */
async function expectItWorks(): Promise<void> {
  if (service === undefined) throw new Error('There is no service.')
  const { id, token } = await service.admin.createConnected()
  const { id: messageId } = await service.instance(id, token).send('5511987654321', 'hello')
  for (let call = 0; call < CALLS; call += 1) {
    const answer = await fetch(`${service.url}/v1/instance`, { signal: AbortSignal.timeout(CONDITION_WITHIN_MS) })
    await answer.text()
    expect(answer.status).toBe(401)
  }
  await until('it to be read', async () => {
    const { status } = await service!.instance(id, token).message(messageId)
    return status === 'read'
  })
}

describe.skipIf(process.platform === 'win32')(
  'a log that cannot be written neither ends nor delays the service',
  () => {
    test.skipIf(process.platform !== 'linux')('on a full disk', async () => {
      service = await new Service({ logTo: open('/dev/full', constants.O_WRONLY) }).start()
      await expectItWorks()
      expect(await service.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    })

    test('into a pipe whose reader is gone', async () => {
      const { reader, writer } = makePipe()
      service = await new Service({ logTo: writer }).start()
      closeSync(reader)
      await expectItWorks()
      expect(await service.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    })

    test('into a pipe that nobody reads from; the pending lines are written once somebody does', async () => {
      const { reader, writer } = makePipe()
      cleanUps.push(() => closeSync(reader))
      service = await new Service({ logTo: writer }).start()
      await expectItWorks()
      let log = ''
      await until('the calls to be in the log', () => {
        log += drain(reader)
        return log.match(/"code":"invalid_token"/g)?.length === CALLS
      })
      const lines = log.split('\n')
      for (const line of lines.slice(0, -1)) expect(() => JSON.parse(line), line).not.toThrow()
    })

    test('into a pipe that nobody reads from: the service can be stopped', async () => {
      const { reader, writer } = makePipe()
      cleanUps.push(() => closeSync(reader))
      service = await new Service({ logTo: writer }).start()
      await expectItWorks()
      expect(await service.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    })
  },
)
