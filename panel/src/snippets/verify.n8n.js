// A Code node ("Run once for each item") behind a Webhook node whose option "Raw body" is on.
// n8n must allow the module: NODE_FUNCTION_ALLOW_BUILTIN=crypto
const { createHmac, timingSafeEqual } = require('crypto')

const secret = $env.POMBAL_WEBHOOK_SECRET
const body = await this.helpers.getBinaryDataBuffer($itemIndex, 'data')
const given = Buffer.from($json.headers['x-service-signature'] ?? '')
const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`)
if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
  throw new Error('This request is not from Pombal.')
}
return { json: JSON.parse(body.toString()) }
