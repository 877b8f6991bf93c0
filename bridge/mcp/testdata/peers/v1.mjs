// The TypeScript SDK, version 1: sessions of 2025-11-25. node v1.mjs URL ERA CALLS
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { answer, call } from './person.mjs';

const client = new Client({ name: 'v1', version: '1' }, { capabilities: { elicitation: { form: {}, url: {} } } });
client.setRequestHandler(ElicitRequestSchema, async (request) => answer(request.params));
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2]), {
	requestInit: { headers: { Authorization: 'Bearer token-of-ann' } },
}));
await call(client);
