import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { en } from '../../panel/src/i18n/en.ts'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { until } from '../until.ts'
import { PanelHarness, signIn } from './harness.ts'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

test('three clicks lead from the sign-in to the first message.read, without a reload', async () => {
  const page = await harness.open('/')
  await page.getByText('cat data/admin.key').waitFor()
  await signIn(page)
  await page.getByText('The sandbox is on, for trying').waitFor()
  const marked = await page.evaluate(() => Object.assign(window, { stillHere: true }).stillHere)
  expect(marked).toBe(true)

  await page.getByRole('button', { name: 'Try the sandbox' }).click()
  // The sandbox links automatically.
  await page.getByText('Messages are sent and received.').waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('The recipient has opened it.').waitFor()
  await page.getByRole('link', { name: 'message.read' }).waitFor()

  await page.keyboard.press('Escape')
  await page.getByRole('navigation', { name: 'Sections' }).getByText('Events').click()
  await page.getByRole('table').getByText('message.read').waitFor()
  expect(await page.evaluate(() => 'stillHere' in window)).toBe(true)
  expect(harness.complaints).toEqual([])
})

test.each(LANGUAGES)(
  '$code: on a laptop the whole form to send a message is in view, even below a warning',
  async ({ code: locale, load }) => {
    const words = await load()
    const { id, token } = await harness.service.admin.createConnected('Laptop')
    const instance = harness.service.instance(id, token)
    await instance.setWebhook('http://127.0.0.1:1/nobody')
    await instance.send('5511987654321', 'Hello')
    const page = await harness.openSignedIn(`/instances/${id}`, { locale, viewport: { width: 1280, height: 720 } })
    await page.getByText(words.deliveryHealth.titles.retrying).waitFor()
    const send = page.getByRole('button', { name: words.send.action, exact: true })
    await until('the button in view', async () => {
      const box = await send.boundingBox()
      return box !== null && box.y + box.height < 720
    })
  },
)

test('the token is shown once, can be copied, and works', async () => {
  const page = await harness.openSignedIn('/', { permissions: ['clipboard-read', 'clipboard-write'] })
  await page.getByRole('button', { name: 'New instance' }).click()
  await page.getByLabel('Name', { exact: true }).fill('By token')
  await page.getByRole('radio', { name: /Try the sandbox/ }).check()
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('button', { name: 'Copy API token' }).click()
  const token = await until('the token', () =>
    page.evaluate(async () => (await navigator.clipboard.readText()) || null),
  )
  expect(token).toMatch(/^pmb_[\w-]{43}$/)
  expect(await page.getByLabel('Send a message from a terminal').textContent()).toContain(token)

  await page.getByText('Messages are sent and received.').waitFor()
  await page.getByRole('navigation', { name: 'Sections' }).getByText('Messages').click()
  await page.getByText('No messages yet').waitFor()
  const response = await fetch(`${harness.url}/v1/messages/text`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ to: '5511987654321', text: 'Sent by a program' }),
  })
  expect(response.status).toBe(202)
  const row = page.getByRole('row').filter({ hasText: 'Sent by a program' })
  await row.getByText('Read', { exact: true }).waitFor()

  await page.getByRole('navigation', { name: 'Sections' }).getByText('Overview').click()
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await page.reload()
  await page.getByText('Messages are sent and received.').waitFor()
  expect(await page.getByText(token).count()).toBe(0)
})

test('an instance is renamed in its settings; a new token, unlinking and deletion need a confirmation', async () => {
  const { id } = await harness.service.admin.createConnected('Short-lived')
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  await page.getByRole('textbox', { name: 'Name' }).fill('Renamed')
  await page.getByRole('textbox', { name: 'Name' }).press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Renamed' }).waitFor()

  await page.getByRole('button', { name: 'New token' }).click()
  await page.getByText('The current token stops working at once').waitFor()
  await page.getByRole('button', { name: 'Create a new token' }).click()
  await page.getByText(/^pmb_/).first().waitFor()

  await page.getByRole('button', { name: 'Unlink', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click()
  await page.getByText('Logged out').first().waitFor()

  await page.getByRole('button', { name: 'Delete the instance' }).click()
  const erase = page.getByRole('button', { name: 'Delete permanently' })
  expect(await erase.isDisabled()).toBe(true)
  await page.getByLabel('Type “Renamed” to confirm').fill('Renamed')
  await erase.click()
  await page.waitForURL(url => url.pathname === '/')
  await page.getByRole('table').waitFor()
  expect(await page.getByRole('row').filter({ hasText: id }).count()).toBe(0)
  expect(harness.complaints).toEqual([])
})

test('an instance with two spaces in its name is deleted by typing the name as the dialog shows it', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Big  shop')
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  await page.getByRole('button', { name: 'Delete the instance' }).click()
  const erase = page.getByRole('button', { name: 'Delete permanently' })
  const field = page.getByLabel('Type “Big shop” to confirm')
  await field.fill('Bigshop')
  expect(await erase.isDisabled()).toBe(true)
  await field.fill('Big shop')
  expect(await erase.isEnabled()).toBe(true)
  await erase.click()
  await page.waitForURL(url => url.pathname === '/')
  expect(harness.complaints).toEqual([])
})

test('a message whose events were not posted asks for a webhook URL, unless one is set by now', async () => {
  const { id, token } = await harness.service.admin.createConnected('URL later')
  const { id: messageId } = await harness.service.instance(id, token).send('5511987654321', 'Hello')
  const page = await harness.openSignedIn(`/instances/${id}/messages?open=${messageId}`)
  const link = page.getByRole('dialog').getByRole('link', { name: en.message.setWebhook })
  await page.getByText('The recipient has opened it.').waitFor()
  await link.waitFor()
  await harness.service.instance(id, token).setWebhook(harness.receiver.url)
  const read = page.waitForResponse(/endpoint-health$/)
  await page.reload()
  await page.getByText('The recipient has opened it.').waitFor()
  await read
  expect(await link.count()).toBe(0)
  expect(harness.complaints).toEqual([])
})

test('the form does not send a message of spaces only', async () => {
  const { id } = await harness.service.admin.createConnected('Spaces')
  const page = await harness.openSignedIn(`/instances/${id}`)
  const send = page.getByRole('button', { name: 'Send', exact: true })
  await until('an enabled form', () => send.isEnabled())
  await page.getByLabel('Text', { exact: true }).fill('  \n ')
  expect(await send.isDisabled()).toBe(true)
  await page.getByLabel('Text', { exact: true }).fill(' Hello ')
  expect(await send.isEnabled()).toBe(true)
})

test('the sandbox phone shows what recipients see, writes back, and can be switched off', async () => {
  const { id, token } = await harness.service.admin.createConnected('Phone')
  const page = await harness.openSignedIn(`/instances/${id}/phone`)
  await page.getByText('No conversations yet').waitFor()
  await harness.service.instance(id, token).send('5511987654321', 'Hello Ana')
  await page.getByRole('link', { name: /^read/ }).waitFor()
  await page.getByPlaceholder('Write as this contact…').fill('Hello back')
  await page.getByRole('button', { name: 'Write', exact: true }).click()
  await page.getByRole('log').getByText('Hello back').waitFor()
  const received = () => harness.service.admin.listEvents(id, '?kind=message.received')
  await until('the event', async () => (await received()).length === 1)

  await page.getByRole('switch', { name: 'Phone is on' }).click()
  await page.getByText('The linked phone is off').waitFor()
  await page.getByText('Reconnecting').first().waitFor()
  const written = harness.service.admin.writeAsContact(id, { from: '5511987654321', text: 'Are you there?' })
  await expect(written).rejects.toMatchObject({ status: 422, code: 'instance_not_connected' })
  await page.getByRole('switch', { name: 'Phone is off' }).click()
  await page.getByText('Connected').first().waitFor()
})

test('on the sandbox phone, a message to another contact does not interrupt what is being typed', async () => {
  const { id } = await harness.service.admin.createConnected('Typing')
  const write = (from: string, text: string) => harness.service.admin.writeAsContact(id, { from, text })
  await write('5511900000001', 'I am the first')
  const page = await harness.openSignedIn(`/instances/${id}/phone`)
  await page.getByRole('log').getByText('I am the first').waitFor()
  await page.getByPlaceholder('Write as this contact…').click()
  await page.keyboard.type('Half a ')
  await write('5511900000002', 'I am the second')
  await page.getByRole('link').filter({ hasText: 'I am the second' }).waitFor()
  await page.keyboard.type('sentence')
  expect(await page.getByPlaceholder('Write as this contact…').inputValue()).toBe('Half a sentence')
  expect(harness.complaints).toEqual([])
})

test('what is typed to one contact of the sandbox phone is not sent as another contact', async () => {
  const { id } = await harness.service.admin.createConnected('Two contacts')
  for (const from of ['5511900000001', '5511900000002'])
    await harness.service.admin.writeAsContact(id, { from, text: `I am ${from}` })
  const page = await harness.openSignedIn(`/instances/${id}/phone?with=5511900000001`)
  const field = page.getByPlaceholder('Write as this contact…')
  const open = async (contact: string) => {
    await page
      .getByRole('link')
      .filter({ hasText: `I am ${contact}` })
      .click()
    await page.getByRole('log').getByText(`I am ${contact}`).waitFor()
  }
  await field.fill('Only from the first')
  await open('5511900000002')
  expect(await field.inputValue()).toBe('')
  await open('5511900000001')
  expect(await field.inputValue()).toBe('Only from the first')
  expect(harness.complaints).toEqual([])
})
