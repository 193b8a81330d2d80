import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { crc32, deflateSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { ptBr } from '../../panel/src/i18n/pt-br.ts'
import { FileHost } from '../flows/media/file-host.ts'
import { until } from '../until.ts'
import { PanelHarness } from './harness.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const ECHO = '15005550005'
const ACTIVE = '<html><script>window.opener ? opener.hacked = 1 : window.hacked = 1</script></html>'

let harness: PanelHarness
let host: FileHost
beforeAll(async () => {
  host = await FileHost.listen()
  harness = await PanelHarness.start({ MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${host.port}` })
})
afterAll(async () => {
  await harness?.dispose()
  await host?.[Symbol.asyncDispose]()
})
afterEach(() => harness.closePages())

/** A picture that browsers show: 4 × 3 pixels. @param shade makes its content unique */
function picture(shade: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data])
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    check.writeUInt32BE(crc32(body))
    return Buffer.concat([length, body, check])
  }
  const header = Buffer.from([0, 0, 0, 4, 0, 0, 0, 3, 8, 0, 0, 0, 0])
  const rows = Buffer.alloc(15, shade)
  for (let row = 0; row < 3; row++) rows[row * 5] = 0
  const start = Buffer.from('89504e470d0a1a0a', 'hex')
  return Buffer.concat([start, chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))])
}

async function seriousProblems(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run(): Promise<{ violations: { id: string; impact: string }[] }> } }).axe
    const { violations } = await axe.run()
    return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id }) => id)
  })
}

/** A tone that browsers play. */
function sound(seconds: number): Buffer {
  const [rate, header] = [8_000, Buffer.alloc(44)]
  const samples = Buffer.alloc(seconds * rate, 0).map((_, n) => 128 + Math.round(50 * Math.sin(n / 3)))
  header.write('RIFF')
  header.writeUInt32LE(36 + samples.length, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [32, 1],
    [34, 8],
  ] as const)
    header.writeUInt16LE(value, at)
  for (const at of [24, 28]) header.writeUInt32LE(rate, at)
  header.write('data', 36)
  header.writeUInt32LE(samples.length, 40)
  return Buffer.concat([header, samples])
}

const isLoaded = (page: Page, scope: string) =>
  until('a loaded picture', () =>
    page.evaluate(selector => {
      const images = [...document.querySelectorAll<HTMLImageElement>(`${selector} img`)]
      return images.length > 0 && images.every(image => image.complete && image.naturalWidth === 4)
    }, scope),
  )

test.each([
  { locale: 'en-GB', words: en, shade: 40 },
  { locale: 'pt-BR', words: ptBr, shade: 90 },
])('$locale: a file is attached, sent, seen on both sides and erased', async ({ locale, words, shade }) => {
  const { id } = await harness.service.admin.createConnected('Files')
  const page = await harness.openSignedIn(`/instances/${id}/messages`, { locale, reducedMotion: 'reduce' })
  const bytes = picture(shade)
  await page.getByRole('button', { name: words.messages.send }).first().click()
  const form = page.getByRole('dialog', { name: words.send.title })
  await form.getByLabel(words.send.to).fill(ECHO)
  await form.locator('input[type=file]').setInputFiles({ name: 'foto.png', mimeType: 'image/png', buffer: bytes })
  await form.getByText('foto.png').waitFor()
  await form.getByLabel(words.files.caption).fill('um recado')
  expect(await seriousProblems(page)).toEqual([])
  await form.getByRole('button', { name: words.send.action, exact: true }).click()
  await page.getByText(words.message.readText).waitFor()
  await isLoaded(page, '[role=dialog]')

  await page.goto(`${harness.url}/instances/${id}/phone`)
  await until('the echo', async () => (await page.getByRole('log').locator('img').count()) === 2)
  await isLoaded(page, '[role=log]')
  expect(await seriousProblems(page)).toEqual([])

  await page.goto(`${harness.url}/instances/${id}/files`)
  await until('both files', async () => (await page.getByRole('table').locator('img').count()) === 2)
  await isLoaded(page, '[role=table]')
  await page.getByLabel(words.files.usageLabel).waitFor({ state: 'attached' })
  expect(await seriousProblems(page)).toEqual([])
  await page.getByRole('button', { name: words.files.eraseLabel('foto.png') }).click()
  const erasing = page.getByRole('dialog', { name: words.files.eraseTitle })
  expect(await erasing.innerText()).toMatch(new RegExp(`foto\\.png, .*${bytes.length}.*\\d\\d:\\d\\d`))
  await erasing.getByRole('button', { name: words.files.erase, exact: true }).click()
  await page.getByText(words.files.erased).waitFor()
  await until('one file', async () => (await page.getByRole('table').locator('img').count()) === 1)
  expect(harness.complaints).toEqual([])
})

test('a failed file is sent again, by hand and selected, with its caption and name, and a text with all its options', async () => {
  const { id, token } = await harness.service.admin.createConnected('Again')
  const instance = harness.service.instance(id, token)
  const named = { as: 'document', filename: 'Invoice 17.png' }
  const file = await instance.sendFile('15005550001', picture(200), { caption: 'the invoice', ...named })
  const page = await harness.openSignedIn(`/instances/${id}/messages?open=${file.id}`)
  await page.getByRole('button', { name: en.tools.again }).click()
  const form = page.getByRole('dialog', { name: en.tools.againTitle })
  await form.getByText(named.filename).waitFor()
  expect(await form.getByLabel(en.files.caption).inputValue()).toBe('the invoice')
  await form.getByLabel(en.send.to).fill(ECHO)
  await form.getByRole('button', { name: en.send.action, exact: true }).click()
  await page.getByText(en.message.readText).waitFor()
  const listed = await harness.service.admin.listMessages(id, '?state=read')
  expect(listed).toMatchObject([{ to: ECHO, text: 'the invoice', media: { id: file.media, ...named } }])

  await page.goto(`${harness.url}/instances/${id}/messages?state=failed`)
  await page.getByRole('checkbox', { name: `Select ${file.id}` }).check()
  await page.getByRole('button', { name: 'Send 1 again' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Send 1 again' }).click()
  await until('the second failure', async () => {
    const failed = await harness.service.admin.listMessages(id, '?state=failed')
    return (
      failed.length === 2 && failed.every(({ media }) => media?.id === file.media && media?.filename === named.filename)
    )
  })

  // A contact that refuses what is sent to it.
  const refusing = '15005550004'
  const { id: asked } = await harness.service.admin.writeAsContact(id, { from: refusing, text: 'Shall I?' })
  const options = {
    mentions: ['5511987654321'],
    preview: { url: 'https://shop.example/cart', title: 'Your cart' },
    metadata: { order: 17 },
  }
  const answer = { to: refusing, text: 'Yes @5511987654321: https://shop.example/cart', ...options }
  const sent = await until('the question is recorded', async () => {
    const response = await fetch(`${harness.url}/v1/messages/text`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...answer, quote: asked }),
    })
    return response.ok && ((await response.json()) as { data: { id: string } }).data
  })
  const quoting = async () =>
    (await harness.service.admin.listMessages(id, '?state=failed')).filter(({ quote }) => quote?.whatsappId === asked)
  await until('the answer to fail', async () => (await quoting()).length === 1)
  await page.goto(`${harness.url}/instances/${id}/messages?open=${sent.id}`)
  await page.getByRole('button', { name: en.tools.again }).click()
  await form.getByRole('button', { name: en.send.action, exact: true }).click()
  await until('the second answer to fail', async () => (await quoting()).length === 2)
  expect(await quoting()).toEqual([expect.objectContaining(answer), expect.objectContaining(answer)])
  expect(harness.complaints).toEqual([])
})

test('the list of files loads small pictures, and no large ones', async () => {
  const { id } = await harness.service.admin.createConnected('Large')
  const page = await harness.openSignedIn()
  for (const [filename, added] of [
    ['small.png', 0],
    ['large.png', 250_000],
  ] as const) {
    const stored = await fetch(`${harness.url}/admin/v1/instances/${id}/media?filename=${filename}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'image/png' },
      body: Buffer.concat([picture(10), Buffer.alloc(added)]),
    })
    expect(stored.status).toBe(201)
  }
  const loaded: string[] = []
  page.on('request', request => request.url().endsWith('/content') && loaded.push(request.url()))
  await page.goto(`${harness.url}/instances/${id}/files`)
  await page.getByText('large.png').waitFor()
  await isLoaded(page, '[role=table]')
  expect(loaded).toHaveLength(1)
  expect(harness.complaints).toEqual([])
})

test('a conversation reads a file when it is on the screen', async () => {
  const { id, token } = await harness.service.admin.createConnected('Long conversation')
  const instance = harness.service.instance(id, token)
  const to = '5511987654321'
  await instance.sendFile(to, picture(77), { caption: 'an old picture' })
  await instance.send(to, `${'line\n'.repeat(300)}the newest line`)
  const page = await harness.openSignedIn(`/instances/${id}/inbox?chat=${to}`)
  let reads = 0
  page.on('request', request => {
    if (/\/media\/med_[^/]+$/.test(request.url())) reads += 1
  })
  const log = page.getByRole('log')
  await log.getByText('an old picture').waitFor()
  await page.reload()
  await log.getByText('an old picture').waitFor()
  expect(reads).toBe(0)
  await log.evaluate(box => box.scrollTo({ top: -box.scrollHeight }))
  await isLoaded(page, '[role=log]')
  expect(reads).toBe(1)
  expect(harness.complaints).toEqual([])
})

test('a file is sent from its URL', async () => {
  const { id } = await harness.service.admin.createConnected('From a URL')
  const page = await harness.openSignedIn(`/instances/${id}/messages`, { reducedMotion: 'reduce' })
  await page.getByRole('button', { name: en.messages.send }).first().click()
  const form = page.getByRole('dialog', { name: en.send.title })
  await form.getByLabel(en.send.to).fill(ECHO)
  await form.getByRole('button', { name: en.files.fromUrl }).click()
  await form.getByLabel(en.files.url).fill(host.file('/foto.png', picture(140), { 'content-type': 'image/png' }))
  expect(await seriousProblems(page)).toEqual([])
  // A file that cannot be read is not left out without a word.
  const broken = { error: { code: 'internal_error', message: 'Broken.' } }
  await page.route(/\/media\/[^/]+$/, route => route.fulfill({ status: 500, json: broken }))
  await form.getByRole('button', { name: en.send.action, exact: true }).click()
  await page.getByText(en.message.readText).waitFor()
  await page.getByText(en.problems.internal_error).waitFor()
  await page.unrouteAll({ behavior: 'wait' })
  harness.complaints.length = 0
  await page.getByRole('button', { name: en.common.tryAgain }).click()
  await isLoaded(page, '[role=dialog]')
  expect(harness.complaints).toEqual([])
})

test('a sound is played in the panel, from any point of it, while its upload shows how far it is', async () => {
  const seconds = 300
  const { id } = await harness.service.admin.createConnected('Sounds')
  const page = await harness.openSignedIn(`/instances/${id}/messages`, { reducedMotion: 'reduce' })
  const network = await page.context().newCDPSession(page)
  const limits = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 300_000 }
  await network.send('Network.enable')
  await network.send('Network.emulateNetworkConditions', limits)
  await page.getByRole('button', { name: en.messages.send }).first().click()
  const form = page.getByRole('dialog', { name: en.send.title })
  await form.getByLabel(en.send.to).fill(ECHO)
  await form.locator('input[type=file]').setInputFiles({ name: 'a.wav', mimeType: 'audio/wav', buffer: sound(seconds) })
  await form.getByRole('progressbar').waitFor()
  /** Every state until the bar disappears, read in the page, because calls from outside may be slower than the upload. */
  const shown = await page.evaluate(async () => {
    const seen = new Set<string>()
    for (;;) {
      const now = document.querySelector('[role=progressbar]')?.getAttribute('aria-valuenow')
      if (now === undefined) return [...seen]
      if (now) seen.add(now)
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })
  expect(shown.length).toBeGreaterThan(1)
  await network.send('Network.emulateNetworkConditions', { ...limits, uploadThroughput: -1 })
  await form.getByRole('button', { name: en.send.action, exact: true }).click()
  await page.getByText(en.message.readText).waitFor()
  const answers: number[] = []
  page.on('response', answer => answer.url().includes('/content') && answers.push(answer.status()))
  const played = await page.locator('[role=dialog] audio').evaluate(async element => {
    const audio = element as HTMLAudioElement
    audio.muted = true
    await audio.play()
    const { duration } = audio
    audio.currentTime = duration - 1
    await new Promise(resolve => audio.addEventListener('ended', resolve, { once: true }))
    return { duration, error: audio.error }
  })
  expect(played).toEqual({ duration: seconds, error: null })
  expect(new Set(answers)).toEqual(new Set([206]))
  expect(harness.complaints).toEqual([])
})

test('after an erasure far down, only the newest and the visible files are read again', async () => {
  const { id, token } = await harness.service.admin.createConnected('Many files')
  const real = await harness.service.instance(id, token).sendFile(ECHO, picture(120), {})
  let isErased = false
  const cursors: (string | null)[] = []
  const page = await harness.openSignedIn('/')
  await page.route(/\/media\?/, async route => {
    const cursor = new URL(route.request().url()).searchParams.get('cursor')
    cursors.push(cursor)
    const from = Number(cursor ?? 0)
    const data = Array.from({ length: 100 }, (_, index) => {
      const isReal = from + index === 399
      const row = { id: isReal ? real.media : `media_${from + index}`, direction: 'out', filename: null, error: null }
      const status = isReal && isErased ? 'gone' : 'ready'
      return { ...row, status, mimetype: 'text/plain', size: 1, createdAt: '2026-01-01T00:00:00.000Z' }
    })
    await route.fulfill({ json: { data, nextCursor: from < 300 ? String(from + 100) : null } })
  })
  page.on('response', answer => (isErased ||= answer.request().method() === 'DELETE' && answer.ok()))
  await page.goto(`${harness.url}/instances/${id}/files`)
  const last = page.locator('[aria-rowindex="401"]')
  await until('the last file', async () => {
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight))
    return last.isVisible()
  })
  cursors.length = 0
  await last.getByRole('button').last().click()
  await page.getByRole('dialog').getByRole('button', { name: en.files.erase, exact: true }).click()
  await last.getByText(en.files.states.gone).waitFor()
  expect(new Set(cursors)).toEqual(new Set([null, '300']))
})

test('a file is accepted by drop and by paste, and one with a script is saved but never run', async () => {
  const { id } = await harness.service.admin.createConnected('Active')
  const page = await harness.openSignedIn(`/instances/${id}/messages`)
  await page.getByRole('button', { name: en.messages.send }).first().click()
  const form = page.getByRole('dialog', { name: en.send.title })
  for (const [event, name] of [
    ['drop', 'page.html'],
    ['paste', 'pasted.html'],
  ] as const) {
    const target = await form.getByRole('textbox').last().elementHandle()
    await page.evaluate(
      ({ event, name, target, text }) => {
        const data = new DataTransfer()
        data.items.add(new File([text], name, { type: 'text/html' }))
        const options = { bubbles: true, cancelable: true }
        const sent =
          event === 'drop'
            ? new DragEvent('drop', { ...options, dataTransfer: data })
            : new ClipboardEvent('paste', { ...options, clipboardData: data })
        target!.dispatchEvent(sent)
      },
      { event, name, target, text: ACTIVE },
    )
    await form.getByText(name).waitFor()
  }
  await form.getByRole('button', { name: en.send.action, exact: true }).click()
  const link = page
    .getByRole('link', { name: en.files.download('page.html') })
    .or(page.getByRole('link', { name: en.files.download('pasted.html') }))
  await link.waitFor()
  const address = await link.getAttribute('href')
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()])
  expect(await readFile(await download.path(), 'utf8')).toBe(ACTIVE)
  // The headers also keep the script from running in a tab or a frame.
  const answer = await page.evaluate(async url => {
    const response = await fetch(url)
    return Object.fromEntries(response.headers)
  }, address!)
  expect(answer).toMatchObject({
    'content-disposition': expect.stringMatching(/^attachment;/),
    'x-content-type-options': 'nosniff',
    'content-security-policy': expect.stringContaining('sandbox'),
  })
  const [opened] = await Promise.all([
    page.waitForEvent('download'),
    page.evaluate(url => void window.open(url), new URL(address!, harness.url).href),
  ])
  await opened.path()
  expect(await page.evaluate(() => 'hacked' in window)).toBe(false)
  expect(harness.complaints).toEqual([])
})
