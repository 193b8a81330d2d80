import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Account, Page } from '../../panel/src/api/types.ts'
import { en } from '../../panel/src/i18n/en.ts'
import { until } from '../until.ts'
import { ADMIN_KEY, PanelHarness, signIn } from './harness.ts'
import { invite } from './invite.ts'

const PASSWORD = 'correct horse battery'

let harness: PanelHarness
beforeAll(async () => {
  harness = await PanelHarness.start()
})
afterAll(() => harness.dispose())
afterEach(() => harness.closePages())

test('a key is created, shown once, used, and revoked', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Shop')
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Key name').fill('CRM')
  await page.getByLabel('read messages').check()
  await page.getByRole('button', { name: 'Create the key' }).click()
  const key = await page.getByRole('dialog').locator('code').innerText()
  expect(key).toMatch(/^pmb_/)
  const ask = () => fetch(`${harness.url}/v1/instance`, { headers: { authorization: `Bearer ${key}` } })
  expect((await ask()).status).toBe(200)
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await page.getByText(`${key.slice(0, 10)}…`).waitFor()
  expect(await page.content()).not.toContain(key)
  await page.getByRole('button', { name: 'Revoke the key CRM' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('The key was revoked.').waitFor()
  expect((await ask()).status).toBe(401)
})

test('an invited viewer sets a password, sees only their instance, and nothing that changes it', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Assigned shop')
  await harness.service.admin.createInstance('whatsapp', 'Other shop')
  const owner = await harness.openSignedIn('/people')
  await owner.getByRole('button', { name: 'Invite a person' }).click()
  await owner.getByLabel('Name to sign in with').fill('ana@example.com')
  await owner.getByRole('radio', { name: 'Viewer' }).check()
  await owner.getByRole('radio', { name: 'Only these instances' }).check()
  await owner.getByLabel('IDs of the instances').fill(id)
  await owner.getByRole('button', { name: 'Create the link' }).click()
  const link = await owner.getByRole('dialog').locator('code').innerText()
  await owner.getByRole('button', { name: 'I have copied it' }).click()
  await owner.getByText('has not accepted yet').waitFor()

  const { pathname, hash } = new URL(link)
  const viewer = await harness.open(pathname + hash)
  await viewer.locator('input[type="password"]').fill(PASSWORD)
  await viewer.getByRole('button', { name: 'Set the password and sign in' }).click()
  await viewer.getByText('Assigned shop').waitFor()
  expect(await viewer.getByText('Other shop').count()).toBe(0)
  expect(await viewer.getByRole('button', { name: 'New instance' }).count()).toBe(0)
  await viewer.goto(`${harness.url}/instances/${id}/settings`)
  await viewer.getByText(id, { exact: true }).first().waitFor()
  for (const name of ['New token', 'New key', 'Delete the instance', 'Save']) {
    expect(await viewer.getByRole('button', { name }).count()).toBe(0)
  }

  const again = await harness.open('/sign-in')
  await again.getByLabel('Name').fill('ana@example.com')
  await again.locator('input[type="password"]').fill(PASSWORD)
  await again.keyboard.press('Enter')
  await again.getByText('Assigned shop').waitFor()

  await owner.getByRole('button', { name: 'Remove ana@example.com' }).click()
  await owner.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await owner.getByText('The account was removed.').waitFor()
  await again.waitForURL(/\/sign-in/)
})

test('a role that was just changed is shown as changed when the dialog is opened again, on a slow link too', async () => {
  await invite(harness, 'rui@example.com', 'viewer')
  const page = await harness.openSignedIn('/people')
  const change = page.getByRole('button', { name: en.people.changeLabel('rui@example.com') })
  const operator = page.getByRole('radio', { name: en.people.roles.operator.name })
  await change.waitFor()
  const list = Promise.withResolvers<void>()
  let isSaved = false
  await page.route(/\/access$/, async route => {
    isSaved = true
    await route.continue()
  })
  await page.route(/\/accounts$/, async route => {
    if (isSaved) await list.promise
    await route.continue()
  })
  await change.click()
  await operator.check()
  await page.getByRole('button', { name: en.common.save }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await change.click()
  expect(await operator.isChecked()).toBe(true)
  list.resolve()
  await page.unrouteAll({ behavior: 'wait' })
})

test('if somebody else changes an access while its form is open, saving shows the new access first', async () => {
  const { id } = await harness.service.admin.createInstance('whatsapp', 'Only this one')
  const other = await harness.service.admin.createInstance('whatsapp', 'Not this one')
  await invite(harness, 'lia@example.com', 'viewer')
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }
  const lia = async () => {
    const answer = await fetch(`${harness.url}/admin/v1/accounts`, { headers })
    const { data } = (await answer.json()) as Page<Account>
    return data.find(({ name }) => name === 'lia@example.com')!
  }
  const changeElsewhere = async (role: string, instances: string[] | null) => {
    const body = JSON.stringify({ role, instances })
    await fetch(`${harness.url}/admin/v1/accounts/${(await lia()).id}/access`, { method: 'PUT', headers, body })
  }
  const page = await harness.openSignedIn('/people')
  const change = page.getByRole('button', { name: en.people.changeLabel('lia@example.com') })
  const save = page.getByRole('button', { name: en.common.save })
  const changed = page.getByRole('alert').filter({ hasText: en.people.changedMeanwhile })
  const ids = page.getByLabel(en.people.ids)
  const all = page.getByRole('radio', { name: en.people.allInstances })
  await change.click()
  await page.getByRole('radio', { name: en.people.roles.operator.name }).check()
  await changeElsewhere('viewer', [id, other.id])
  await save.click()
  await changed.waitFor()
  expect(await ids.inputValue()).toBe(`${id}\n${other.id}`)
  await save.click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await lia()).toMatchObject({ role: 'operator', instances: [id, other.id] })

  // One person takes an instance away, while another gives all of them.
  await change.click()
  await ids.fill(id)
  await changeElsewhere('operator', null)
  await save.click()
  await changed.waitFor()
  expect(await all.isChecked()).toBe(true)
  await page.getByRole('radio', { name: en.people.someInstances }).check()
  await save.click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await lia()).toMatchObject({ role: 'operator', instances: [id] })
})

test('a viewer sees failing deliveries and the phone of a sandbox, and no action that the service would refuse', async () => {
  const { id, token } = await harness.service.admin.createConnected('Watched')
  const instance = harness.service.instance(id, token)
  await instance.setWebhook(harness.receiver.url)
  harness.receiver.answerWith({ kind: 'status', status: 500 })
  await instance.send('5511987654321', 'Hello')
  const [retrying] = await until('an event that waits for a retry', async () => {
    const events = await harness.service.admin.listEvents(id, '?state=retrying')
    return events.length > 0 && events
  })
  const owner = await harness.openSignedIn('/people')
  await owner.getByRole('button', { name: 'Invite a person' }).click()
  await owner.getByLabel('Name to sign in with').fill('watcher@example.com')
  await owner.getByRole('radio', { name: 'Viewer' }).check()
  await owner.getByRole('button', { name: 'Create the link' }).click()
  const { pathname, hash } = new URL(await owner.getByRole('dialog').locator('code').innerText())
  const viewer = await harness.open(pathname + hash)
  await viewer.locator('input[type="password"]').fill(PASSWORD)
  await viewer.getByRole('button', { name: 'Set the password and sign in' }).click()
  await viewer.getByRole('link', { name: 'Watched' }).first().waitFor()

  const actions = /^(Redeliver|Redeliver…|Retry .*|Try .*now|Write as .*|Write|Send|Send .*|Save|Pause|Edit|New .*)$/
  const pages: [path: string, shown: string][] = [
    ['', 'Webhook: Retrying'],
    ['/events', 'message.'],
    [`/events?open=${retrying!.id}`, 'Attempt 1'],
    // Only owners and operators see the whole URL, which may contain a secret.
    ['/webhook', `${new URL(harness.receiver.url).origin}/…`],
    ['/phone', 'Hello'],
    ['/messages', 'Hello'],
    ['/inbox', 'Hello'],
  ]
  for (const [path, shown] of pages) {
    await viewer.goto(`${harness.url}/instances/${id}${path}`)
    await viewer.getByText(shown).first().waitFor()
    const offered = await viewer
      .getByRole('button', { name: actions })
      .or(viewer.getByRole('link', { name: 'Send a test event' }))
      .allInnerTexts()
    expect(offered, path).toEqual([])
  }
  await viewer.goto(`${harness.url}/instances/${id}/phone`)
  expect(await viewer.getByRole('switch').isDisabled()).toBe(true)
  await viewer.goto(harness.url)
  await viewer.getByText('needs attention').waitFor()
  expect(await viewer.getByRole('button', { name: actions }).count()).toBe(0)
})

test('a password with a space at its ends signs in, whether of a person or of the panel', async () => {
  const password = ` ${PASSWORD} `
  const invited = await harness.open(await invite(harness, 'eva@example.com', 'owner'))
  await invited.locator('input[type="password"]').fill(password)
  await invited.getByRole('button', { name: 'Set the password and sign in' }).click()
  await invited.waitForURL(url => url.pathname === '/')
  const page = await harness.open('/sign-in')
  await page.getByLabel('Name').fill('eva@example.com')
  await page.locator('input[type="password"]').fill(password)
  await page.keyboard.press('Enter')
  await page.waitForURL(url => url.pathname === '/')

  await harness.service.admin.setPassword(password)
  await signIn(await harness.open('/sign-in'), password)
  // A key that was copied together with the spaces around it.
  await signIn(await harness.open('/sign-in'), ` ${ADMIN_KEY} `)
})

test('an invitation without its secret says so; with the whole link it works', async () => {
  const path = await invite(harness, 'leo@example.com', 'viewer')
  const page = await harness.open('/invitation')
  await page.getByText('This link is incomplete.').waitFor()
  await page.goto(harness.url + path)
  await page.getByText('This link is incomplete.').waitFor({ state: 'detached' })
  await page.locator('input[type="password"]').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set the password and sign in' }).click()
  await page.waitForURL(url => url.pathname === '/')
})

test('the audit lists who did what, and can be checked', async () => {
  const page = await harness.openSignedIn('/audit')
  await page
    .getByRole('cell', { name: /createInstance/ })
    .first()
    .waitFor()
  await page
    .getByRole('cell', { name: /acceptInvitation/ })
    .first()
    .waitFor()
  const { id } = await harness.service.admin.createInstance('sandbox', 'Just now')
  await page.getByRole('button', { name: 'Read again' }).click()
  await page.getByRole('row').filter({ hasText: id }).first().waitFor()
  // A record that is made elsewhere in the panel is there when the page is opened again.
  await page.getByRole('link', { name: 'Alerts' }).click()
  await page.getByRole('heading', { name: 'Alerts', level: 1 }).waitFor()
  const later = await harness.service.admin.createInstance('sandbox', 'Later')
  await page.goBack()
  await page.getByRole('row').filter({ hasText: later.id }).first().waitFor()
  await page.getByRole('button', { name: 'Check the records' }).click()
  await page.getByText('are there and unchanged').waitFor()
  expect(harness.complaints).toEqual([])
})
