import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createCertificate } from '../../../../test/certificate.ts'
import { attach } from './attach.ts'
import { UploadFailed, uploadFile } from './upload.ts'

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

test('a file is not read to its end after the link has closed', async () => {
  const closing = new AbortController()
  let parts = 0
  let isClosed = false
  async function* file() {
    try {
      for (; parts < 1_000; parts += 1) {
        if (parts === 2) closing.abort()
        yield randomBytes(1_000)
      }
    } finally {
      isClosed = true
    }
  }
  const media = { id: 'med_1', mimetype: 'application/pdf', size: 1_000_000, sha256: randomBytes(32), expiresAt: 0 }
  const attached = attach(
    {
      media: { ...media, filename: null },
      open: async () => file(),
      form: 'document',
      filename: null,
      caption: '',
      picture: Promise.resolve(null),
      more: null,
    },
    {
      connect: async () => ({ hosts: [], auth: 'a' }),
      simulated: true,
      openAgent: () => new https.Agent(),
      signal: closing.signal,
    },
  )
  await expect(attached).rejects.toThrow(UploadFailed)
  expect([parts, isClosed]).toEqual([2, true])
})
