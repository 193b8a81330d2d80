import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createCertificate } from '../../../../test/certificate.ts'
import { uploadFile } from './upload.ts'

test('a link that closes while the file is being opened ends the upload, and leaves no rejection unhandled', async () => {
  const host = https.createServer(createCertificate()).listen(0, '127.0.0.1')
  await once(host, 'listening')
  const closing = new AbortController()
  const bytes = randomBytes(1_000)
  const upload = uploadFile(
    {
      form: 'document',
      mediaKey: randomBytes(32),
      encSha256: randomBytes(32),
      size: bytes.length,
      async open() {
        closing.abort()
        // Node reports a rejection that nobody has handled by now.
        await sleep(20)
        return (async function* () {
          yield bytes
        })()
      },
    },
    {
      connect: async () => ({ hosts: [{ hostname: `127.0.0.1:${(host.address() as AddressInfo).port}` }], auth: 'a' }),
      simulated: true,
      openAgent: () => new https.Agent({ rejectUnauthorized: false }),
      signal: closing.signal,
    },
  )
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  await expect(upload).rejects.toThrow('aborted')
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
  host.close()
})
