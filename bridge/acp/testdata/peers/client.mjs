// The TypeScript SDK as an editor. node client.mjs STEPS, an agent's command in AGENT: every step is done in a process of the
// agent's own, which is killed where a step says so; what the editor sees goes out as lines of JSON.
import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

const print = (line) => console.log(JSON.stringify(line));
const [{ capabilities, processes }] = [JSON.parse(process.argv[2])];
let sessionId;

for (const steps of processes) {
	const child = spawn(process.env.AGENT, [], { stdio: ['pipe', 'pipe', 'inherit'] });
	const gone = new Promise((resolve) => child.on('exit', resolve));
	let answers = [];
	let killed = false;
	let ctx;
	// next is what the person does with a question: an answer, or something that happens meanwhile.
	const next = async (signal, cancelled) => {
		const answer = answers.shift();
		if (answer === 'kill') killed = child.kill('SIGKILL');
		if (answer === 'session/cancel') await ctx.notify(acp.methods.agent.session.cancel, { sessionId });
		if (typeof answer !== 'string') return answer;
		await new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', resolve)));
		return cancelled;
	};
	const app = acp
		.client({ name: 'peer' })
		.onRequest(acp.methods.client.session.requestPermission, async ({ params, signal }) => {
			print({ permission: params.toolCall.title, call: params.toolCall.toolCallId, options: params.options.map((o) => o.optionId) });
			return next(signal, { outcome: { outcome: 'cancelled' } });
		})
		.onRequest(acp.methods.client.elicitation.create, async ({ params, signal }) => {
			print({ elicitation: params.mode, message: params.message.split('\n')[0], call: params.toolCallId });
			return next(signal, { action: 'cancel' });
		})
		.onNotification(acp.methods.client.elicitation.complete, () => print({ complete: true }))
		.onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
			if (update.sessionUpdate === 'tool_call') print({ tool_call: update.toolCallId, status: update.status });
			if (update.sessionUpdate === 'tool_call_update') print({ update: update.toolCallId, status: update.status });
		});
	const work = app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (connected) => {
		ctx = connected;
		await ctx.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: capabilities });
		for (const step of steps) {
			const where = { cwd: process.cwd(), mcpServers: [] };
			if (step.session === 'new') ({ sessionId } = await ctx.request(acp.methods.agent.session.new, where));
			else if (step.session) await ctx.request(acp.methods.agent.session[step.session], { sessionId, ...where });
			if (step.prompt === undefined) continue;
			answers = step.answers ?? [];
			const prompt = [{ type: 'text', text: step.prompt }];
			const { stopReason } = await ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt });
			await new Promise((resolve) => setTimeout(resolve, 50)); // updates can be handled after the response
			print({ stop: stopReason });
		}
		child.stdin.end();
	});
	await work.catch((e) => killed || print({ failed: String(e) }));
	await gone;
}
